// The QDMA's error tree: faults set leaf bits, leaves set global bits, global bits raise the error interrupt.
//
//   fault ──► leaf status ──(leaf mask)──► global status ──(global mask, armed)──► irq_valid_o
//
// A leaf bit is set whatever the mask; its global bit follows while status & mask is not 0, so that software clears the
// leaf first. Status is W1C, and a fault in the same cycle wins and counts as later. A leaf's log keeps its first error until
// the leaf's status is 0 again, then reads 0; of faults in one cycle the lowest source is the first. The error interrupt
// goes out once and disarms itself. A refused context command sets its global bit at once.
//
// Faults are taken in every cycle from every source. Latency: leaf 1 cycle, global 2, interrupt 3. rdata_o is valid in the
// cycle after rd_i, 0 otherwise and for words of other blocks. Leaves that nothing here can set (RAM errors, C2H fatal
// errors) are plain storage elsewhere.
//
// The logs' error type is the number of the status bit. A data read that the host refuses counts as DMA, a descriptor read
// as UR_CA; the text does not say which it would be. Both are assumed. Source: qdma.md section 8; regs/rdl/qdma_csr.rdl.
`default_nettype none
module qdma_error_tree
  import qdma_pkg::*;
  import onic_regs_pkg::*;
#(
  parameter int unsigned Sources = 1
) (
  input  wire                  clk,
  input  wire                  rstn,
  // Register access
  input  wire                  wr_i,                   // one cycle
  input  wire                  rd_i,                   // one cycle
  input  wire           [13:0] addr_i,                 // below 0x3000
  input  wire           [31:0] wdata_i,
  output logic          [31:0] rdata_o,
  // Faults of queues
  input  wire fault_t          fault_i [Sources],
  // Faults of register accesses, one cycle each
  input  wire                  csr_unmapped_i,
  input  wire                  qid_range_i,
  input  wire func_t           access_func_i,
  input  wire           [16:0] access_addr_i,
  // Refused context command, one cycle, with the function that gave it
  input  wire                  command_refused_i,
  input  wire func_t           command_func_i,
  // Error interrupt, one cycle; ready says that it will be taken
  output logic                 irq_valid_o,
  output logic          [11:0] irq_func_o,
  output logic          [10:0] irq_vector_o,
  input  wire                  irq_ready_i,
  output logic                 idle_o                  // no fault is on its way, no interrupt due
);
  typedef enum logic [1:0] {LeafDsc = 2'd0, LeafTrq = 2'd1, LeafC2h = 2'd2, LeafH2c = 2'd3} leaf_e;
  typedef struct packed {
    leaf_e      leaf;
    logic [4:0] place;
  } place_t;

  // ---- Where a fault shows ----
  function automatic place_t place_of(input fault_e kind);
    unique case (kind)
      FaultDescPoison:       return {LeafDsc, 5'(QDMA_CSR_GLBL_DSC_ERROR_STATUS_POISON_LSB)};
      FaultDescRead:         return {LeafDsc, 5'(QDMA_CSR_GLBL_DSC_ERROR_STATUS_UR_CA_LSB)};
      FaultDescParam:        return {LeafDsc, 5'(QDMA_CSR_GLBL_DSC_ERROR_STATUS_PARAM_LSB)};
      FaultDataPoison:       return {LeafDsc, 5'(QDMA_CSR_GLBL_DSC_ERROR_STATUS_DAT_POISON_LSB)};
      FaultDataRead:         return {LeafDsc, 5'(QDMA_CSR_GLBL_DSC_ERROR_STATUS_DMA_LSB)};
      FaultInvalidPidx:      return {LeafDsc, 5'(QDMA_CSR_GLBL_DSC_ERROR_STATUS_INVALID_PIDX_LSB)};
      FaultCsrUnmapped:      return {LeafTrq, 5'(QDMA_CSR_GLBL_TRQ_ERROR_STATUS_CSR_UNMAPPED_LSB)};
      FaultQidRange:         return {LeafTrq, 5'(QDMA_CSR_GLBL_TRQ_ERROR_STATUS_QID_RANGE_LSB)};
      FaultLenMismatch:      return {LeafC2h, 5'(QDMA_CSR_C2H_ERROR_STATUS_LEN_MISMATCH_LSB)};
      FaultQidMismatch:      return {LeafC2h, 5'(QDMA_CSR_C2H_ERROR_STATUS_QID_MISMATCH_LSB)};
      FaultDescResponse:     return {LeafC2h, 5'(QDMA_CSR_C2H_ERROR_STATUS_DESC_RSP_LSB)};
      FaultMsi:              return {LeafC2h, 5'(QDMA_CSR_C2H_ERROR_STATUS_MSI_INT_FAIL_LSB)};
      FaultDescCount:        return {LeafC2h, 5'(QDMA_CSR_C2H_ERROR_STATUS_DESC_COUNT_LSB)};
      FaultCmptInvalidQueue: return {LeafC2h, 5'(QDMA_CSR_C2H_ERROR_STATUS_CMPT_INVALID_QUEUE_LSB)};
      FaultCmptRingFull:     return {LeafC2h, 5'(QDMA_CSR_C2H_ERROR_STATUS_CMPT_QUEUE_FULL_LSB)};
      FaultBadCidx:          return {LeafC2h, 5'(QDMA_CSR_C2H_ERROR_STATUS_CMPT_BAD_CIDX_LSB)};
      FaultZeroLength:       return {LeafH2c, 5'(QDMA_CSR_H2C_ERROR_STATUS_ZERO_LENGTH_LSB)};
      default:               return '0;
    endcase
  endfunction

  // ---- What happens in this cycle: bits of each leaf, and the first fault of each ----
  logic         any_fault;
  logic  [31:0] set   [4];
  fault_t       first [4];
  logic   [4:0] first_place [4];
  logic   [3:0] hit;

  always_comb begin
    any_fault = csr_unmapped_i || qid_range_i;
    for (int unsigned s = 0; s < Sources; s++) any_fault |= fault_i[s].kind != FaultNone;
  end

  always_comb begin
    hit = '0;
    for (int unsigned l = 0; l < 4; l++) begin
      set[l]         = '0;
      first[l]       = '0;
      first_place[l] = '0;
    end
    if (any_fault) begin
      if (csr_unmapped_i || qid_range_i) begin
        hit[LeafTrq] = 1'b1;
        set[LeafTrq][QDMA_CSR_GLBL_TRQ_ERROR_STATUS_CSR_UNMAPPED_LSB] = csr_unmapped_i;
        set[LeafTrq][QDMA_CSR_GLBL_TRQ_ERROR_STATUS_QID_RANGE_LSB]    = qid_range_i;
      end
      for (int unsigned s = 0; s < Sources; s++) begin
        automatic place_t at = place_of(fault_i[s].kind);
        if (fault_i[s].kind != FaultNone) begin
          if (!hit[at.leaf]) begin
            first[at.leaf]       = fault_i[s];
            first_place[at.leaf] = at.place;
          end
          hit[at.leaf]           = 1'b1;
          set[at.leaf][at.place] = 1'b1;
        end
      end
    end
  end

  // ---- Registers ----
  localparam logic [31:0] StatusOffset [4] = '{QDMA_CSR_GLBL_DSC_ERROR_STATUS, QDMA_CSR_GLBL_TRQ_ERROR_STATUS,
                                               QDMA_CSR_C2H_ERROR_STATUS, QDMA_CSR_H2C_ERROR_STATUS};
  localparam logic [31:0] MaskOffset   [4] = '{QDMA_CSR_GLBL_DSC_ERROR_MASK, QDMA_CSR_GLBL_TRQ_ERROR_MASK,
                                               QDMA_CSR_C2H_ERROR_MASK, QDMA_CSR_H2C_ERROR_MASK};
  localparam int unsigned GlobalPlace  [4] = '{QDMA_CSR_GLBL_ERROR_STATUS_DSC_LSB, QDMA_CSR_GLBL_ERROR_STATUS_TRQ_LSB,
                                               QDMA_CSR_GLBL_ERROR_STATUS_C2H_ST_LSB,
                                               QDMA_CSR_GLBL_ERROR_STATUS_H2C_ST_LSB};
  localparam int unsigned RefusedLsb   = QDMA_CSR_GLBL_ERROR_STATUS_IND_CTXT_CMD_LSB;
  localparam int unsigned RefusedFuncs = QDMA_CSR_GLBL_ERROR_STATUS_IND_CTXT_CMD_WIDTH;
  localparam int unsigned ArmLsb       = QDMA_CSR_ERROR_INTERRUPT_ARM_LSB;
  localparam logic [31:0] GlobalBits   = QDMA_CSR_WORD_WRITABLE[qdma_csr_word(QDMA_CSR_GLBL_ERROR_MASK)];
  localparam logic [31:0] InterruptBits = QDMA_CSR_WORD_WRITABLE[qdma_csr_word(QDMA_CSR_ERROR_INTERRUPT)];

  logic [31:0] status_q [4];
  logic [31:0] mask_q   [4];
  logic [31:0] global_q, global_mask_q, interrupt_q;
  logic        fresh_q;                                // status or mask changed in the cycle before

  wire [31:0] offset  = {18'd0, addr_i[13:2], 2'd0};
  wire        shows   = command_refused_i && command_func_i < 8'(RefusedFuncs);
  wire [31:0] refused = shows ? 32'd1 << (RefusedLsb + 32'(command_func_i)) : '0;

  logic [31:0] kept [4];                               // status without what this cycle's write clears
  logic  [3:0] is_first;                               // the log is free for this cycle's fault
  always_comb begin
    for (int unsigned l = 0; l < 4; l++) begin
      kept[l]     = status_q[l];
      is_first[l] = 1'b0;
      if (wr_i && offset == StatusOffset[l]) kept[l] = status_q[l] & ~wdata_i;
      if (hit[l]) is_first[l] = kept[l] == '0;
    end
  end

  logic [31:0] leaves;                                 // global bits that the leaves ask for
  always_comb begin
    leaves = '0;
    for (int unsigned l = 0; l < 4; l++) leaves[GlobalPlace[l]] = (status_q[l] & mask_q[l]) != '0;
  end

  always_ff @(posedge clk) begin
    if (!rstn) begin
      for (int unsigned l = 0; l < 4; l++) begin
        status_q[l] <= '0;
        mask_q[l]   <= '0;
      end
      global_q      <= '0;
      global_mask_q <= '0;
      interrupt_q   <= '0;
      fresh_q       <= 1'b0;
    end else begin
      fresh_q <= any_fault || wr_i || command_refused_i;
      if (any_fault || wr_i) begin
        for (int unsigned l = 0; l < 4; l++) begin
          status_q[l] <= kept[l] | set[l];
          if (wr_i && offset == MaskOffset[l]) mask_q[l] <= wdata_i;
        end
      end
      if (wr_i && offset == QDMA_CSR_GLBL_ERROR_MASK) global_mask_q <= wdata_i & GlobalBits;
      if (wr_i || fresh_q || command_refused_i) begin
        global_q <= (global_q & ~(wr_i && offset == QDMA_CSR_GLBL_ERROR_STATUS ? wdata_i : '0)) | leaves | refused;
      end
      if (irq_valid_o) interrupt_q[ArmLsb] <= 1'b0;
      if (wr_i && offset == QDMA_CSR_ERROR_INTERRUPT) interrupt_q <= wdata_i & InterruptBits;
    end
  end

  wire irq_due = interrupt_q[ArmLsb] && (global_q & global_mask_q) != '0;
  assign irq_valid_o  = irq_due && irq_ready_i;
  assign idle_o       = !any_fault && !fresh_q && !irq_due;
  assign irq_func_o   = interrupt_q[QDMA_CSR_ERROR_INTERRUPT_FUNC_LSB +: 12];
  assign irq_vector_o = interrupt_q[QDMA_CSR_ERROR_INTERRUPT_VECTOR_LSB +: 11];

  // ---- Logs. Void while their leaf's status is 0. ----
  logic       log_h2c_q;
  qid_t       log_qid_q [4];
  logic [4:0] log_place_q [4];
  index_t     log_cidx_q, log_old_q, log_new_q;
  func_t      log_func_q;
  logic [16:0] log_addr_q;
  logic       log_bell_q;                              // target: 0 registers, 1 queue space

  always_ff @(posedge clk) begin
    if (any_fault) begin
      for (int unsigned l = 0; l < 4; l++) begin
        if (is_first[l]) begin
          log_qid_q[l]   <= first[l].qid;
          log_place_q[l] <= first_place[l];
        end
      end
      if (is_first[LeafDsc]) begin
        log_h2c_q  <= first[LeafDsc].h2c;
        log_cidx_q <= first[LeafDsc].cidx;
        log_old_q  <= first[LeafDsc].old_pidx;
        log_new_q  <= first[LeafDsc].new_pidx;
      end
      if (is_first[LeafTrq]) begin
        log_func_q <= access_func_i;
        log_addr_q <= access_addr_i;
        log_bell_q <= qid_range_i;
      end
    end
  end

  wire [31:0] dsc_log0  = {1'b1, log_h2c_q, 19'd0, log_qid_q[LeafDsc]};
  wire [31:0] dsc_log1  = {4'd0, log_cidx_q, 7'd0, log_place_q[LeafDsc]};
  wire [31:0] dsc_log2  = {log_old_q, log_new_q};
  wire [31:0] trq_log   = {4'd0, log_bell_q, 2'd0, log_func_q, log_addr_q};
  wire [31:0] c2h_first = {11'd0, log_place_q[LeafC2h], 5'd0, log_qid_q[LeafC2h]};
  wire [31:0] h2c_first = {12'd0, log_place_q[LeafH2c][3:0], 5'd0, log_qid_q[LeafH2c]};

  // ---- Read ----
  function automatic logic [31:0] log_of(input logic [31:0] status, input logic [31:0] word);
    return status != '0 ? word : '0;
  endfunction

  always_ff @(posedge clk) begin
    rdata_o <= '0;
    if (rd_i) begin
      unique case (offset)
        QDMA_CSR_GLBL_ERROR_STATUS:     rdata_o <= global_q;
        QDMA_CSR_GLBL_ERROR_MASK:       rdata_o <= global_mask_q;
        QDMA_CSR_GLBL_DSC_ERROR_STATUS: rdata_o <= status_q[LeafDsc];
        QDMA_CSR_GLBL_DSC_ERROR_MASK:   rdata_o <= mask_q[LeafDsc];
        QDMA_CSR_GLBL_DSC_ERROR_LOG0:   rdata_o <= log_of(status_q[LeafDsc], dsc_log0);
        QDMA_CSR_GLBL_DSC_ERROR_LOG1:   rdata_o <= log_of(status_q[LeafDsc], dsc_log1);
        QDMA_CSR_GLBL_DSC_ERROR_LOG2:   rdata_o <= log_of(status_q[LeafDsc], dsc_log2);
        QDMA_CSR_GLBL_TRQ_ERROR_STATUS: rdata_o <= status_q[LeafTrq];
        QDMA_CSR_GLBL_TRQ_ERROR_MASK:   rdata_o <= mask_q[LeafTrq];
        QDMA_CSR_GLBL_TRQ_ERROR_LOG:    rdata_o <= log_of(status_q[LeafTrq], trq_log);
        QDMA_CSR_C2H_ERROR_STATUS:      rdata_o <= status_q[LeafC2h];
        QDMA_CSR_C2H_ERROR_MASK:        rdata_o <= mask_q[LeafC2h];
        QDMA_CSR_C2H_FIRST_ERROR_QID:   rdata_o <= log_of(status_q[LeafC2h], c2h_first);
        QDMA_CSR_H2C_ERROR_STATUS:      rdata_o <= status_q[LeafH2c];
        QDMA_CSR_H2C_ERROR_MASK:        rdata_o <= mask_q[LeafH2c];
        QDMA_CSR_H2C_FIRST_ERROR_QID:   rdata_o <= log_of(status_q[LeafH2c], h2c_first);
        QDMA_CSR_ERROR_INTERRUPT:       rdata_o <= interrupt_q;
        default:                        rdata_o <= '0;
      endcase
    end
  end

  wire unused_addr = ^addr_i[1:0];
endmodule
`default_nettype wire
