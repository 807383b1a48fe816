// Packs the beats of judged H2C frames into the stream.
//
// In the reorder buffer a frame is whole beats but for two: its last, and the one that ends its first 4 KiB page. From
// there on each beat out is joined from two:
//
//   buffer     | full | ... | s bytes  |   full   | ... | r bytes |          s = frame_i.shift
//   stream     | full | ... | s | 64-s | s | 64-s | ... | s + r        |     and one beat more if s + r > 64 (flush)
//
// A frame without such a break passes unshifted, 1 beat a cycle; a break costs one cycle, or none with a flush. An error frame
// has its length, zeroes for data and tuser_err on each beat. Bytes behind a frame's end, in its last beat, are void.
// Outputs are registers, 2 cycles behind the buffer's memory; back-pressure stops the whole pipe. end_* tells a frame whose
// last beat the shell takes in this cycle; a last beat is not offered before end_room_i says that there is room for two.
// Source: qdma.md section 5.2; QDMA-RTL decision 17.
`include "onic_assert.svh"
`default_nettype none
module qdma_h2c_pack import qdma_pkg::*, qdma_h2c_pkg::*; (
  input  wire          clk,
  input  wire          rstn,                           // synchronous, active low, power-up only
  // Judged frames
  input  wire          frame_valid_i,
  input  wire frame_t  frame_i,
  input  wire end_e    verdict_i,
  output logic         frame_take_o,
  // Their beats
  output logic         beat_take_o,
  input  wire  [511:0] data_i,                         // one cycle after beat_take_o
  // Stream
  output logic         m_axis_tvalid,
  output logic         m_axis_tlast,
  output logic [511:0] m_axis_tdata,
  output qid_t         m_axis_tuser_qid,
  output logic         m_axis_tuser_err,
  output logic  [31:0] m_axis_tuser_mdata,
  output logic   [5:0] m_axis_tuser_mty,
  input  wire          m_axis_tready,
  // Frames taken
  output logic         end_valid_o,
  output end_t         end_o,
  input  wire          end_room_i                      // a register
);
  typedef enum logic [1:0] {
    Pass,                                              // a beat as it is
    Keep,                                              // the beat before the break: nothing goes out
    Join,                                              // what was kept, then this beat; the rest is kept
    Flush                                              // what was kept
  } op_e;

  logic advance;                                       // the pipe moves

  // ---- Step: which beat, what with it ----
  logic [10:0] step_q;                                 // of the frame
  op_e         op;
  wire         flush = step_q == frame_i.beats;
  wire         last  = frame_i.flush ? flush : step_q + 11'd1 == frame_i.beats;
  wire         take  = frame_valid_i && advance;

  always_comb begin
    if (flush)                                      op = Flush;
    else if (frame_i.shift == '0)                   op = Pass;
    else if (step_q < 11'(frame_i.break_beat))      op = Pass;
    else if (step_q == 11'(frame_i.break_beat))     op = Keep;
    else                                            op = Join;
  end

  assign beat_take_o  = take && !flush;
  assign frame_take_o = take && last;

  // ---- The beat, read ----
  logic       valid_q, last_q;
  op_e        op_q;
  end_t       end_q;
  logic [31:0] mdata_q;
  logic  [5:0] mty_q, shift_q;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      step_q  <= '0;
      valid_q <= 1'b0;
    end else begin
      if (take)    step_q  <= last ? '0 : step_q + 1'b1;
      if (advance) valid_q <= frame_valid_i;
    end
    if (take) begin
      op_q    <= op;
      last_q  <= last;
      end_q   <= '{qid: frame_i.qid, generation: frame_i.generation, index: frame_i.index,
                   next_index: frame_i.next_index, how: verdict_i};
      mdata_q <= frame_i.mdata;
      mty_q   <= frame_i.mty;
      shift_q <= frame_i.shift;
    end
  end

  // ---- The beat, joined ----
  logic [511:0] kept_q;                                // shift_q bytes, zeroes above
  wire    [8:0] up_bits   = {shift_q, 3'd0};
  wire    [9:0] down_bits = 10'd512 - 10'(up_bits);
  wire          offer     = valid_q && op_q != Keep;

  assign advance = (!m_axis_tvalid || m_axis_tready) && (!(valid_q && last_q) || end_room_i);

  always_ff @(posedge clk) begin
    if (!rstn)                          m_axis_tvalid <= 1'b0;
    else if (advance)                   m_axis_tvalid <= offer;
    else if (m_axis_tready)             m_axis_tvalid <= 1'b0;
    if (advance && offer) begin
      unique case (op_q)
        Join:    m_axis_tdata <= kept_q | (data_i << up_bits);
        Flush:   m_axis_tdata <= kept_q;
        default: m_axis_tdata <= data_i;
      endcase
      if (end_q.how != EndSent) m_axis_tdata <= '0;
      m_axis_tlast       <= last_q;
      m_axis_tuser_qid   <= end_q.qid;
      m_axis_tuser_err   <= end_q.how != EndSent;
      m_axis_tuser_mdata <= mdata_q;
      m_axis_tuser_mty   <= last_q ? mty_q : '0;
      end_o              <= end_q;
    end
    if (advance && valid_q) begin
      if (op_q == Keep)      kept_q <= (data_i << down_bits) >> down_bits;
      else if (op_q == Join) kept_q <= data_i >> down_bits;
    end
  end

  assign end_valid_o = m_axis_tvalid && m_axis_tready && m_axis_tlast;

  // ---- Rules of use ----
  `ONIC_ASSERT_STABLE(BeatStable_A, clk, rstn, m_axis_tvalid, m_axis_tready,
                      {m_axis_tlast, m_axis_tuser_qid, m_axis_tuser_err, m_axis_tuser_mty, m_axis_tuser_mdata},
                      QidWidth + 40, "an H2C beat changed while the shell stalled it")

  // ---- What a run should have seen ----
  always_ff @(posedge clk) begin
    if (rstn) begin
      Break_C: cover (advance && valid_q && op_q == Keep);
      Flush_C: cover (advance && valid_q && op_q == Flush);
      EndWaits_C: cover (valid_q && last_q && !end_room_i);
    end
  end
endmodule
`default_nettype wire
