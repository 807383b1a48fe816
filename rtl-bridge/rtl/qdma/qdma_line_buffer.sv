// Lines of completion entries, one a queue, and the way of lines, status words and interrupts out, in order.
//
// A word (the low 8 bytes of an entry) goes into its queue's line. A notice, at the earliest one with the last word it sends,
// copies the line into a FIFO one cycle later; so the next word may go into the same line in the very next cycle. At the
// FIFO's end a notice becomes, each part if it has it: the line's bytes from first to last, the status word, and, once that
// was taken, an interrupt. Bytes between the low 8 of one entry and the next are 0.
// A line or word that crosses 4 KiB, which only a ring that is not aligned to 64 bytes has, is written in two beats.
//
// Latency: notice to cmp_valid_o 3 cycles. Throughput: one beat a cycle; an interrupt costs a cycle. Back-pressure: room_o
// tells that a notice may be decided on in the next cycle, and goes low early enough for those already on their way.
//
// Source: qdma.md 5.4, 5.5, 7.
`include "onic_assert.svh"
`default_nettype none
module qdma_line_buffer import qdma_pkg::*, qdma_completion_pkg::*; #(
  parameter  int unsigned NumQueue = 512,             // a power of two, at least 2
  parameter  int unsigned Depth    = 16,              // notices, a power of two, at least 8
  parameter  int unsigned InterruptDepth = 8,         // interrupts, a power of two
  localparam int unsigned QueueWidth = $clog2(NumQueue)
) (
  input  wire                  clk,
  input  wire                  rstn,                  // synchronous, active low
  // Words in
  input  wire                  word_we_i,
  input  wire [QueueWidth-1:0] word_queue_i,
  input  wire            [2:0] word_index_i,
  input  wire           [63:0] word_i,
  // Notices in
  input  wire                  notice_valid_i,
  input  wire notice_t         notice_i,
  output logic                 room_o,
  // Out
  output logic                 cmp_valid_o,
  output write_t               cmp_o,
  input  wire                  cmp_ready_i,
  output logic                 irq_valid_o,
  output interrupt_t           irq_o,
  input  wire                  irq_ready_i,
  // Flush: busy until all notices of before the pulse were taken, their interrupts too
  input  wire                  flush_i,
  output logic                 flush_busy_o,
  output logic                 idle_o                 // no notice is inside, nothing offered
);
  localparam int unsigned DepthWidth = $clog2(Depth);

  // ---- Lines. Notices follow their words by a cycle.
  logic [511:0] line_mem [NumQueue];
  logic         notice_valid_q;
  notice_t      notice_q;

  always_ff @(posedge clk) if (word_we_i) line_mem[word_queue_i][{word_index_i, 6'b0} +: 64] <= word_i;

  always_ff @(posedge clk) begin
    if (!rstn) notice_valid_q <= 1'b0;
    else       notice_valid_q <= notice_valid_i;
    if (notice_valid_i) notice_q <= notice_i;
  end

  // ---- The FIFO, in two memories: a notice without a line leaves the wide one alone.
  notice_t               notice_mem [Depth];
  logic          [511:0] data_mem   [Depth];
  logic [DepthWidth-1:0] wr_ptr_q, rd_ptr_q;
  logic   [DepthWidth:0] count_q;
  logic                  pop;

  always_ff @(posedge clk) if (notice_valid_q) notice_mem[wr_ptr_q] <= notice_q;
  always_ff @(posedge clk) if (notice_valid_q && notice_q.line) data_mem[wr_ptr_q] <= line_mem[notice_q.qid[QueueWidth-1:0]];

  always_ff @(posedge clk) begin
    if (!rstn) begin
      wr_ptr_q <= '0;
      rd_ptr_q <= '0;
      count_q  <= '0;
      room_o   <= 1'b0;
    end else begin
      if (notice_valid_q) wr_ptr_q <= wr_ptr_q + 1'b1;
      if (pop) rd_ptr_q <= rd_ptr_q + 1'b1;
      if (notice_valid_q || pop) count_q <= count_q + (DepthWidth + 1)'(notice_valid_q) - (DepthWidth + 1)'(pop);
      // On their way may be: one in notice_q, one being decided, and one that is admitted by this cycle's room_o.
      room_o   <= count_q <= (DepthWidth + 1)'(Depth - 4);
    end
  end

  // ---- The head's parts, one a cycle.
  typedef enum logic [2:0] {PartLine, PartLineRest, PartStatus, PartStatusRest, PartInterrupt} part_e;

  part_e       part_q, part, after;
  notice_t     head;
  logic [63:0] line_be, page_be, be;
  logic        crosses, load, push_irq, last_part;
  logic        irq_room;
  wire         can_load = !cmp_valid_o || cmp_ready_i;

  always_comb begin
    head      = '0;
    part      = PartLine;
    after     = PartLine;
    line_be   = '0;
    page_be   = '1;
    be        = '0;
    crosses   = 1'b0;
    load      = 1'b0;
    push_irq  = 1'b0;
    last_part = 1'b0;
    if (count_q != '0) begin
      head = notice_mem[rd_ptr_q];
      part = part_q;
      if (part == PartLine && !head.line) part = head.status ? PartStatus : PartInterrupt;
      unique case (part)
        PartLine, PartLineRest: begin
          line_be = ({64{1'b1}} << {head.first, 3'b0}) & ({64{1'b1}} >> {3'd7 - head.last, 3'b0});
          if (head.line_addr[11:6] == '1) page_be = {64{1'b1}} >> head.line_addr[5:0];
          crosses = part == PartLine && (line_be & page_be) != '0 && (line_be & ~page_be) != '0;
          be      = part == PartLineRest ? line_be & ~page_be : crosses ? line_be & page_be : line_be;
        end
        PartStatus, PartStatusRest: begin
          line_be = 64'hFF;
          if (head.status_addr[11:6] == '1) page_be = {64{1'b1}} >> head.status_addr[5:0];
          crosses = part == PartStatus && (line_be & ~page_be) != '0;
          be      = part == PartStatusRest ? line_be & ~page_be : line_be & page_be;
        end
        default: ;
      endcase
      if (crosses)                             after = part == PartLine ? PartLineRest : PartStatusRest;
      else if (head.status && (part == PartLine || part == PartLineRest)) after = PartStatus;
      else if (head.irq && part != PartInterrupt)                   after = PartInterrupt;
      else                                     last_part = 1'b1;
      // An interrupt waits until all beats before it were taken.
      load     = part != PartInterrupt && can_load;
      push_irq = part == PartInterrupt && can_load && irq_room;
    end
    pop = (load || push_irq) && last_part;
  end

  always_ff @(posedge clk) begin
    if (!rstn) begin
      part_q      <= PartLine;
      cmp_valid_o <= 1'b0;
    end else begin
      if (load || push_irq) part_q <= after;
      cmp_valid_o <= load || (cmp_valid_o && !cmp_ready_i);
    end
    if (load) begin
      cmp_o.func <= head.func;
      cmp_o.be   <= be;
      cmp_o.last <= 1'b1;
      if (part == PartStatus || part == PartStatusRest) begin
        cmp_o.addr       <= head.status_addr;
        cmp_o.data[63:0] <= 64'(head.status_word);
      end else begin
        cmp_o.addr <= head.line_addr;
        for (int unsigned i = 0; i < 8; i++)
          cmp_o.data[64*i +: 64] <= (3'(i) & 3'((4'd1 << head.entry_size) - 4'd1)) == '0 ? data_mem[rd_ptr_q][64*i +: 64] : '0;
      end
    end
  end

  // ---- Interrupts
  wire [$clog2(InterruptDepth):0] irq_count;
  wire                            irq_pop = irq_valid_o && irq_ready_i;

  sync_fifo #(.Width($bits(interrupt_t)), .Depth(InterruptDepth)) u_interrupts (
    .clk(clk), .rstn(rstn),
    .wr_en_i(push_irq), .wr_data_i({head.func, head.vector, head.qid}), .wr_ready_o(irq_room),
    .rd_valid_o(irq_valid_o), .rd_data_o(irq_o), .rd_en_i(irq_pop), .count_o(irq_count)
  );

  // ---- Flush: the notices in the FIFO, then the beat behind it, then the interrupts.
  typedef enum logic [1:0] {FlushNone, FlushNotices, FlushBeat, FlushInterrupts} flush_e;
  flush_e                          flush_q;
  logic             [DepthWidth:0] notices_left_q;
  logic [$clog2(InterruptDepth):0] irq_left_q;

  assign flush_busy_o = flush_q != FlushNone;
  assign idle_o       = count_q == '0 && !notice_valid_q && !cmp_valid_o && !irq_valid_o;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      flush_q <= FlushNone;
    end else if (flush_i) begin
      flush_q        <= FlushNotices;
      notices_left_q <= count_q + (DepthWidth + 1)'(notice_valid_q) - (DepthWidth + 1)'(pop);
    end else begin
      unique case (flush_q)
        FlushNotices: begin
          if (notices_left_q == '0) flush_q <= FlushBeat;
          else if (pop)             notices_left_q <= notices_left_q - 1'b1;
        end
        FlushBeat: if (can_load) begin
          flush_q    <= FlushInterrupts;
          irq_left_q <= irq_count - ($clog2(InterruptDepth) + 1)'(irq_pop);
        end
        FlushInterrupts: begin
          if (irq_left_q == '0)  flush_q <= FlushNone;
          else if (irq_pop)       irq_left_q <= irq_left_q - 1'b1;
        end
        default: ;
      endcase
    end
  end

  `ONIC_ASSERT(NoticeRoom_A, clk, rstn, !notice_valid_q || count_q != (DepthWidth + 1)'(Depth), "no room for a notice")
  `ONIC_ASSERT(NoticeSome_A, clk, rstn, !notice_valid_q || notice_q.line || notice_q.status || notice_q.irq,
               "a notice says nothing")
  `ONIC_ASSERT_STABLE(CmpStable_A, clk, rstn, cmp_valid_o, cmp_ready_i, cmp_o, $bits(write_t),
                      "a write changed while it waited")
endmodule
`default_nettype wire
