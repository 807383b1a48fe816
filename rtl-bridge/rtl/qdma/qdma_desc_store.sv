// Descriptors that were fetched, AheadMax places for each queue.
//
// Banks of one descriptor's width, as many as a 64-byte beat has descriptors; descriptors of neighbouring slots lie in
// neighbouring banks, so a beat is written in one cycle wherever it begins, each bank at its own row: one write port a bank.
// One read port: data in the next cycle. Reading a slot in the cycle of its write gives the old data.
`default_nettype none
module qdma_desc_store import qdma_pkg::*, qdma_desc_pkg::*; #(
  parameter int unsigned NumQueue  = 512,              // a power of two
  parameter int unsigned DescBytes = 8,                // 8 or 16
  parameter int unsigned AheadMax  = 256               // a power of two, 8 to 256
) (
  input  wire           clk,
  // Write: descriptors of one beat from slot on, as many as count says but no more than a beat holds
  input  wire           wr_i,
  input  wire qid_t          wr_qid_i,
  input  wire slot_t         wr_slot_i,
  input  wire slot_t         wr_count_i,
  input  wire   [511:0] wr_data_i,
  // Read
  input  wire qid_t          rd_qid_i,
  input  wire slot_t         rd_slot_i,
  output logic  [127:0] rd_data_o                      // upper half 0 for 8-byte descriptors
);
  localparam int unsigned Banks      = 64 / DescBytes;
  localparam int unsigned BankWidth  = $clog2(Banks);
  localparam int unsigned AheadWidth = $clog2(AheadMax);
  localparam int unsigned RowWidth   = $clog2(NumQueue) + AheadWidth - BankWidth;
  localparam int unsigned DescWidth  = 8 * DescBytes;

  logic [DescWidth-1:0] mem [Banks][1 << RowWidth];

  typedef logic [AheadWidth-1:0] place_t;              // of a slot in its queue's memory

  function automatic logic [RowWidth-1:0] row(input qid_t qid, input place_t place);
    return RowWidth'({qid, place} >> BankWidth);
  endfunction

  always_ff @(posedge clk) begin
    if (wr_i) begin
      for (int unsigned bank = 0; bank < Banks; bank++) begin
        // Which of the beat's descriptors falls into the bank.
        automatic logic [BankWidth-1:0] k = BankWidth'(bank) - wr_slot_i[BankWidth-1:0];
        if (slot_t'(k) < wr_count_i)
          mem[bank][row(wr_qid_i, place_t'(wr_slot_i) + place_t'(k))] <= wr_data_i[9'(k) * 9'(DescWidth) +: DescWidth];
      end
    end
  end

  logic [DescWidth-1:0] rd_data_q;
  always_ff @(posedge clk) rd_data_q <= mem[rd_slot_i[BankWidth-1:0]][row(rd_qid_i, place_t'(rd_slot_i))];
  assign rd_data_o = 128'(rd_data_q);

  // Slots count on over several laps of the memory.
  wire unused_lap = ^{wr_slot_i, rd_slot_i};
endmodule
`default_nettype wire
