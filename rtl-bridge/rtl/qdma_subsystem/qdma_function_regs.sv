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
// Offsets and the default key come from the register map (regs/rdl/qdma_function.rdl).
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
  import onic_regs_pkg::*;

  localparam logic [31:0] NoAnswer  = 32'hDEAD_BEEF;
  localparam logic [11:0] QconfAddr = 12'(QDMA_FUNCTION_QCONF);
  localparam logic [11:0] TableAddr = 12'(QDMA_FUNCTION_INDIRECTION_TABLE);
  localparam logic [11:0] TableEnd  = TableAddr + 12'(QDMA_FUNCTION_INDIRECTION_TABLE_COUNT
                                                      * QDMA_FUNCTION_INDIRECTION_TABLE_STRIDE);
  localparam logic [11:0] KeyAddr   = 12'(QDMA_FUNCTION_HASH_KEY);
  localparam logic [11:0] KeyEnd    = KeyAddr + 12'(QDMA_FUNCTION_HASH_KEY_COUNT * QDMA_FUNCTION_HASH_KEY_STRIDE);

  wire [11:0] addr_bit_11_off = {1'b0, reg_addr_i[10:0]};
  wire  [3:0] key_word        = reg_addr_i[5:2];
  wire        qconf_hit       = reg_addr_i == QconfAddr;
  wire        table_hit       = addr_bit_11_off >= TableAddr && addr_bit_11_off < TableEnd;
  wire        key_hit         = reg_addr_i >= KeyAddr && reg_addr_i < KeyEnd;

  assign table_wr_o    = reg_wr_i && table_hit;
  assign table_addr_o  = reg_addr_i[8:2];
  assign table_wdata_o = reg_wdata_i[15:0];

  always_ff @(posedge axis_aclk) begin
    if (!axis_aresetn) begin
      q_base_o   <= '0;
      num_q_o    <= '0;
      hash_key_o <= QDMA_FUNCTION_HASH_KEY_RESET;
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
