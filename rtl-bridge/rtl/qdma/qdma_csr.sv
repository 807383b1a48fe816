// The QDMA's plain control and status registers: storage, identification, counters, and what the engines see of them.
//
// Which words exist, their resets and the bits that a write replaces come from the map's package; this file holds none of
// it. A word that another block owns (context window, error tree) reads 0 here, as does an offset without a register, so
// that the blocks' answers are joined by OR. config_o follows a write by two cycles. rdata_o is valid in the cycle after
// rd_i and 0 otherwise. One access a cycle.
//
// Source: qdma.md sections 2 and 4; regs/rdl/qdma_csr.rdl.
`include "onic_assert.svh"
`default_nettype none
module qdma_csr
  import qdma_pkg::*;
  import onic_regs_pkg::*;
#(
  parameter int unsigned NumQueue = 512,
  parameter int unsigned NumFunc  = 1                  // physical functions, 1 to 4
) (
  input  wire         clk,
  input  wire         rstn,
  // Register access
  input  wire         wr_i,                            // one cycle
  input  wire         rd_i,                            // one cycle
  input  wire  [13:0] addr_i,                          // below 0x3000
  input  wire  [31:0] wdata_i,
  input  wire func_t  func_i,                          // who accesses
  output logic [31:0] rdata_o,
  // Settings
  output config_t     config_o,
  // Counter pulses, each for one event
  input  wire         count_completion_in_i,
  input  wire         count_completion_out_i,
  input  wire         count_completion_dropped_i,
  input  wire         count_status_out_i
);
  `ONIC_ASSERT_PARAM(NumFunc, NumFunc >= 1 && NumFunc <= 4, "NumFunc must be 1 to 4")

  localparam int unsigned PlaceWidth = $clog2(QDMA_CSR_WORDS + 1);

  // ---- Words that vary with the card ----
  function automatic logic [31:0] each_function(input logic [5:0] bars);
    logic [31:0] word;
    word = '0;
    for (int unsigned f = 0; f < NumFunc; f++) word[6*f +: 6] = bars;
    return word;
  endfunction
  localparam logic [31:0] DmaBars  = each_function(QDMA_CSR_PF_BARLITE_INT_RESET[5:0]);
  localparam logic [31:0] UserBars = each_function(QDMA_CSR_PF_BARLITE_EXT_RESET[5:0]);

  // ---- Words of other blocks ----
  function automatic logic is_foreign(input logic [31:0] offset);
    unique case (offset) inside
      [QDMA_CSR_IND_CTXT_DATA : QDMA_CSR_IND_CTXT_CMD],
      [QDMA_CSR_GLBL_ERROR_STATUS : QDMA_CSR_GLBL_ERROR_MASK],
      QDMA_CSR_GLBL_DSC_ERROR_MASK, QDMA_CSR_GLBL_TRQ_ERROR_MASK, QDMA_CSR_C2H_ERROR_MASK, QDMA_CSR_H2C_ERROR_MASK,
      QDMA_CSR_ERROR_INTERRUPT: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // ---- Storage ----
  logic           [31:0] storage_q [QDMA_CSR_WORDS];
  wire            [31:0] offset   = {18'd0, addr_i[13:2], 2'd0};
  wire  [PlaceWidth-1:0] place    = PlaceWidth'(qdma_csr_word(offset));
  wire                   exists   = place != PlaceWidth'(QDMA_CSR_WORDS);
  wire                   write    = wr_i && exists && !is_foreign(offset);
  wire            [31:0] writable = QDMA_CSR_WORD_WRITABLE[place];

  always_ff @(posedge clk) begin
    if (!rstn) begin
      for (int unsigned i = 0; i < QDMA_CSR_WORDS; i++) storage_q[i] <= QDMA_CSR_WORD_RESET[i];
    end else if (write) begin
      storage_q[place] <= (storage_q[place] & ~writable) | (wdata_i & writable);
    end
  end

  // ---- Counters. They wrap; software can't clear them. C2H_DESC_DROP stays 0: frames wait for descriptors. ----
  logic [31:0] completion_in_q, completion_out_q, completion_dropped_q, status_out_q;
  always_ff @(posedge clk) begin
    if (!rstn) begin
      completion_in_q      <= '0;
      completion_out_q     <= '0;
      completion_dropped_q <= '0;
      status_out_q         <= '0;
    end else begin
      if (count_completion_in_i)      completion_in_q      <= completion_in_q + 1'b1;
      if (count_completion_out_i)     completion_out_q     <= completion_out_q + 1'b1;
      if (count_completion_dropped_i) completion_dropped_q <= completion_dropped_q + 1'b1;
      if (count_status_out_i)         status_out_q         <= status_out_q + 1'b1;
    end
  end

  // ---- Read ----
  always_ff @(posedge clk) begin
    if (!rd_i) begin
      rdata_o <= '0;
    end else begin
      unique case (offset)
        QDMA_CSR_PF_BARLITE_INT:          rdata_o <= DmaBars;
        QDMA_CSR_PF_BARLITE_EXT:          rdata_o <= UserBars;
        QDMA_CSR_QDMA_CAP:                rdata_o <= 32'(NumQueue);
        QDMA_CSR_FUNCTION_RETURN:         rdata_o <= 32'(func_i);
        QDMA_CSR_C2H_COMPLETIONS_IN:      rdata_o <= completion_in_q;
        QDMA_CSR_C2H_COMPLETIONS_OUT:     rdata_o <= completion_out_q;
        QDMA_CSR_C2H_COMPLETIONS_DROPPED: rdata_o <= completion_dropped_q;
        QDMA_CSR_C2H_STATUS_OUT:          rdata_o <= status_out_q;
        default:                          rdata_o <= exists ? storage_q[place] : '0;
      endcase
    end
  end

  // ---- Settings: a copy, rewritten only after a write, so that nothing wide is worked out in idle cycles ----
  localparam int unsigned RingSize   = qdma_csr_word(QDMA_CSR_GLBL_RING_SIZE);
  localparam int unsigned BufferSize = qdma_csr_word(QDMA_CSR_C2H_BUFFER_SIZE);
  localparam int unsigned TimerCount = qdma_csr_word(QDMA_CSR_C2H_TIMER_COUNT);
  localparam int unsigned Threshold  = qdma_csr_word(QDMA_CSR_C2H_COUNTER_THRESHOLD);
  localparam int unsigned TimerTick  = qdma_csr_word(QDMA_CSR_INTERRUPT_TIMER_TICK);
  localparam int unsigned DscCfg     = qdma_csr_word(QDMA_CSR_GLBL_DSC_CFG);
  localparam int unsigned Format     = qdma_csr_word(QDMA_CSR_CMPT_FORMAT);
  localparam int unsigned Prefetch   = qdma_csr_word(QDMA_CSR_C2H_PREFETCH_CFG_2);
  localparam int unsigned Coalesce   = qdma_csr_word(QDMA_CSR_C2H_COALESCE);

  logic written_q;
  always_ff @(posedge clk) begin
    written_q <= write || !rstn;
    if (written_q) begin
      for (int unsigned i = 0; i < 16; i++) begin
        config_o.ring_size[i]         <= storage_q[RingSize + i][15:0];
        config_o.buffer_size[i]       <= storage_q[BufferSize + i][15:0];
        config_o.timer_count[i]       <= storage_q[TimerCount + i][15:0];
        config_o.counter_threshold[i] <= storage_q[Threshold + i][15:0];
      end
      config_o.timer_tick   <= storage_q[TimerTick];
      config_o.wb_interval  <= storage_q[DscCfg][QDMA_CSR_GLBL_DSC_CFG_WB_ACC_INTERVAL_LSB +: 3];
      config_o.color_bit    <= storage_q[Format][QDMA_CSR_CMPT_FORMAT_COLOR_LOCATION_LSB +: 16];
      config_o.error_bit    <= storage_q[Format][QDMA_CSR_CMPT_FORMAT_ERROR_LOCATION_LSB +: 16];
      config_o.prefetch_num <= storage_q[Prefetch][QDMA_CSR_C2H_PREFETCH_CFG_2_NUM_LSB +: 6];
      config_o.coalesce     <= storage_q[Coalesce];
    end
  end

  wire unused_addr = ^addr_i[1:0];
endmodule
`default_nettype wire
