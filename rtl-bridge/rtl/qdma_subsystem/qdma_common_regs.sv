// The QDMA subsystem's common page: frame counters of our own, which upstream's header files list but never had.
//
//   0x00  C2H_PACKETS             frames that the QDMA took          64 bits: low word, then high word
//   0x08  C2H_DROP_QUEUE_RANGE    table entry outside the function's queues
//   0x10  H2C_PACKETS             frames taken from the QDMA, the dropped ones too
//   0x18  H2C_DROP_NO_FUNCTION    no function owns the queue
//   0x40 + 0x20*f                 of function f: +0x00 C2H_PACKETS, +0x08 C2H_DROP_QUEUE_RANGE, +0x10 H2C_PACKETS,
//                                 +0x18 C2H_INSIDE (32 bits, the word above reads 0): frames inside it now, counted
//                                 from their last beat's entry to the QDMA's taking it
//   anything else                 reads 0xDEADBEEF; writes ignored
//
// Reading a low word latches the high word that belongs to it. Reading never clears; the block's reset does. At any
// moment, for each function: frames in since the reset = C2H_PACKETS + C2H_DROP_QUEUE_RANGE + C2H_INSIDE. (A frame that was half
// out when the reset came is finished, and counts as a packet after it.)
//
// Offsets come from the register map (regs/rdl/qdma_common.rdl).
`include "onic_assert.svh"
`default_nettype none
module qdma_common_regs #(
  parameter int unsigned NumFunc = 1                            // 1 to 4
) (
  input  wire                axis_aclk,
  input  wire                axis_aresetn,                      // clears the counters
  input  wire                stream_rstn,                       // empties the C2H path
  // Register bus, addresses within the page; reg_rdata_o is valid one cycle after reg_rd_i
  input  wire                reg_rd_i,
  input  wire         [11:0] reg_addr_i,
  output logic        [31:0] reg_rdata_o,
  // Events of each function, one cycle for each frame
  input  wire  [NumFunc-1:0] c2h_in_i,
  input  wire  [NumFunc-1:0] c2h_out_i,
  input  wire  [NumFunc-1:0] c2h_drop_i,
  input  wire  [NumFunc-1:0] h2c_in_i,
  input  wire                h2c_drop_i
);
  import onic_regs_pkg::*;

  localparam logic [31:0] NoAnswer    = 32'hDEAD_BEEF;
  localparam int unsigned NumCounters = 4 + 3 * NumFunc;        // totals, then three for each function
  localparam int unsigned IncWidth    = 3;                      // up to 4 functions drop in one cycle

  // Address of a counter's low word.
  function automatic logic [11:0] counter_addr(input int unsigned index);
    int unsigned func;
    func = (index - 4) / 3;
    unique case (index)
      0: return 12'(QDMA_COMMON_C2H_PACKETS);
      1: return 12'(QDMA_COMMON_C2H_DROP_QUEUE_RANGE);
      2: return 12'(QDMA_COMMON_H2C_PACKETS);
      3: return 12'(QDMA_COMMON_H2C_DROP_NO_FUNCTION);
      default: unique case ((index - 4) % 3)
        0:       return 12'(QDMA_COMMON_FUNCTION_C2H_PACKETS + QDMA_COMMON_FUNCTION_C2H_PACKETS_STRIDE * func);
        1:       return 12'(QDMA_COMMON_FUNCTION_C2H_DROP_QUEUE_RANGE
                            + QDMA_COMMON_FUNCTION_C2H_DROP_QUEUE_RANGE_STRIDE * func);
        default: return 12'(QDMA_COMMON_FUNCTION_H2C_PACKETS + QDMA_COMMON_FUNCTION_H2C_PACKETS_STRIDE * func);
      endcase
    endcase
  endfunction

  function automatic logic [11:0] inside_addr(input int unsigned func);
    return 12'(QDMA_COMMON_FUNCTION_C2H_INSIDE + QDMA_COMMON_FUNCTION_C2H_INSIDE_STRIDE * func);
  endfunction

  logic [NumCounters-1:0] inc;
  logic    [IncWidth-1:0] inc_by [NumCounters];
  logic            [31:0] low  [NumCounters];
  logic            [31:0] high [NumCounters];
  logic            [31:0] inside_frames_q [NumFunc];

  always_comb begin
    for (int unsigned i = 0; i < NumCounters; i++) inc_by[i] = IncWidth'(1);
    inc_by[1] = IncWidth'($countones(c2h_drop_i));
    inc[3:0]  = {h2c_drop_i, h2c_drop_i || h2c_in_i != '0, c2h_drop_i != '0, c2h_out_i != '0};
    for (int unsigned f = 0; f < NumFunc; f++)
      inc[4 + 3*f +: 3] = {h2c_in_i[f], c2h_drop_i[f], c2h_out_i[f]};
  end

  for (genvar i = 0; i < NumCounters; i++) begin : gen_counter
    counter64 #(.IncWidth(IncWidth)) u_counter (
      .clk(axis_aclk), .rstn(axis_aresetn),
      .inc_i(inc[i]), .inc_by_i(inc_by[i]),
      .rd_low_i(reg_rd_i && reg_addr_i == counter_addr(i)),
      .low_o(low[i]), .high_o(high[i])
    );
  end

  for (genvar f = 0; f < NumFunc; f++) begin : gen_inside
    always_ff @(posedge axis_aclk) begin
      if (!stream_rstn) inside_frames_q[f] <= '0;
      else inside_frames_q[f] <= inside_frames_q[f] + 32'(c2h_in_i[f]) - 32'(c2h_out_i[f]) - 32'(c2h_drop_i[f]);
    end
    `ONIC_ASSERT(InsideNotNegative_A, axis_aclk, stream_rstn,
                 !((c2h_out_i[f] || c2h_drop_i[f]) && inside_frames_q[f] == '0),
                 "more frames left a function than entered it")
  end

  always_ff @(posedge axis_aclk) begin
    if (reg_rd_i) begin
      reg_rdata_o <= NoAnswer;
      for (int unsigned i = 0; i < NumCounters; i++) begin
        if (reg_addr_i == counter_addr(i))         reg_rdata_o <= low[i];
        if (reg_addr_i == counter_addr(i) + 12'd4) reg_rdata_o <= high[i];
      end
      for (int unsigned f = 0; f < NumFunc; f++) begin
        if (reg_addr_i == inside_addr(f))         reg_rdata_o <= inside_frames_q[f];
        if (reg_addr_i == inside_addr(f) + 12'd4) reg_rdata_o <= '0;
      end
    end
  end
endmodule
`default_nettype wire
