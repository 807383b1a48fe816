// Registers of one PCIe function: QCONF, the window on the indirection table, the hash key.
//
//   0x000            QCONF: bits 31:16 base queue, 15:0 number of queues; reset 0
//   0x400 + 4n       indirection table, n = 0 to 127, bits 15:0; bits 31:16 read 0. Address bit 11 is not decoded, so
//                    0xC00 to 0xDFF is a second view, as upstream's
//   0x600 + 4i       key word i, i = 0 to 9: bits 32i+31:32i of the 320-bit key
//   anything else    reads 0xDEADBEEF, writes ignored
//
// Table and key ignore address bits 1:0. reg_rdata_o is valid one cycle after reg_rd_i.
//
// Source: open-nic-shell src/qdma_subsystem/qdma_subsystem_function_register.sv, shell.md section 7.2; the table's
// upper half is upstream's quirk Q16, not reproduced.
`default_nettype none
module qdma_function_regs (
  input  wire          axis_aclk,
  input  wire          axis_aresetn,
  // Register bus, addresses within the function's page
  input  wire          reg_wr_i,
  input  wire          reg_rd_i,
  input  wire   [11:0] reg_addr_i,
  input  wire   [31:0] reg_wdata_i,
  output logic  [31:0] reg_rdata_o,
  // Values
  output logic  [15:0] q_base_o,
  output logic  [15:0] num_q_o,
  output logic [319:0] hash_key_o,
  // To the indirection table
  output logic         table_wr_o,
  output logic   [6:0] table_addr_o,
  output logic  [15:0] table_wdata_o,
  input  wire   [15:0] table_rdata_i
);
  localparam logic  [11:0] QconfAddr = 12'h000;
  localparam logic  [31:0] NoAnswer  = 32'hDEAD_BEEF;
  localparam logic [319:0] ResetKey  = {
    32'h7C9C37DE, 32'h18DC4386, 32'hD9270F6F, 32'h260374B8, 32'hBFD0404B,
    32'h7872E224, 32'hDC1B91BB, 32'h011BA7A6, 32'h376CC87E, 32'hD6E31417
  };

  wire       qconf_hit = reg_addr_i == QconfAddr;
  wire       table_hit = reg_addr_i[10:9] == 2'b10;
  wire       key_hit   = reg_addr_i[11:6] == 6'h18 && key_word < 4'd10;
  wire [3:0] key_word  = reg_addr_i[5:2];

  assign table_wr_o    = reg_wr_i && table_hit;
  assign table_addr_o  = reg_addr_i[8:2];
  assign table_wdata_o = reg_wdata_i[15:0];

  always_ff @(posedge axis_aclk) begin
    if (!axis_aresetn) begin
      q_base_o   <= '0;
      num_q_o    <= '0;
      hash_key_o <= ResetKey;
    end else if (reg_wr_i) begin
      if (qconf_hit) {q_base_o, num_q_o} <= reg_wdata_i;
      if (key_hit) hash_key_o[32 * 32'(key_word) +: 32] <= reg_wdata_i;
    end
  end

  always_ff @(posedge axis_aclk) begin
    if (reg_rd_i) begin
      if (qconf_hit)      reg_rdata_o <= {q_base_o, num_q_o};
      else if (table_hit) reg_rdata_o <= {16'd0, table_rdata_i};
      else if (key_hit)   reg_rdata_o <= hash_key_o[32 * 32'(key_word) +: 32];
      else                reg_rdata_o <= NoAnswer;
    end
  end
endmodule
`default_nettype wire
