// Card to host: takes whole frames from the functions in turn, sends them to the QDMA with their side fields, and one
// completion after each.
//
// Turns go round the functions, frame by frame: a function that has a frame waits for at most one frame of each other.
// A frame's last beat and the next one's first may follow each other directly, whichever functions they are from.
//
// tcrc: CRC-32, polynomial 0x04C11DB7, from bit 511 of a beat to bit 0, padding included, over the frame up to and with
// the beat it stands beside. It starts from 0xFFFFFFFF with each frame (upstream never restarts it, quirk Q19).
// ctrl_ecc is 0: the vendor's code is not public.
//
// A completion is made when the QDMA takes a frame's last beat. A frame may start only while fewer than 507 frames have
// started whose completion the QDMA has not taken (upstream's threshold): so the completion FIFO never overflows.
//
// One register from a function's beat to the QDMA, one beat per cycle. s_axis_tready depends on m_axis_tready in the
// same cycle.
//
// Source: open-nic-shell src/qdma_subsystem/qdma_subsystem_c2h.sv, shell.md sections 11.2 to 11.4; upstream's arbiter
// loses requests of three functions (quirk Q9).
`include "onic_assert.svh"
`default_nettype none
module qdma_c2h #(
  parameter int unsigned NumFunc = 1                            // 1 to 4
) (
  input  wire                axis_aclk,
  input  wire                stream_rstn,                       // falls only while frames_open_o is low
  input  wire                stop_i,                            // start no frame
  output logic               frames_open_o,                     // a frame is half out, or its completion is not
  // Frames from the functions; ctrl_* stand for the whole frame
  input  wire  [NumFunc-1:0] s_axis_tvalid,
  input  wire        [511:0] s_axis_tdata    [NumFunc],
  input  wire  [NumFunc-1:0] s_axis_tlast,
  input  wire         [10:0] s_axis_ctrl_qid [NumFunc],
  input  wire         [15:0] s_axis_ctrl_len [NumFunc],
  output logic [NumFunc-1:0] s_axis_tready,
  // Frames to the QDMA
  output logic               m_axis_tvalid,
  output logic               m_axis_tlast,
  output logic       [511:0] m_axis_tdata,
  output logic        [31:0] m_axis_tcrc,
  output logic        [15:0] m_axis_ctrl_len,
  output logic        [10:0] m_axis_ctrl_qid,
  output logic         [5:0] m_axis_mty,
  input  wire                m_axis_tready,
  // Completions to the QDMA
  output logic               m_axis_cpl_tvalid,
  output logic        [10:0] m_axis_cpl_qid,
  output logic        [15:0] m_axis_cpl_len,
  output logic        [15:0] m_axis_cpl_pkt_id,
  input  wire                m_axis_cpl_tready,
  // Events, one cycle for each frame that the QDMA took, by function
  output logic [NumFunc-1:0] frame_out_o
);
  localparam int unsigned FuncWidth    = NumFunc > 1 ? $clog2(NumFunc) : 1;
  localparam int unsigned CplDepth     = 512;
  localparam int unsigned CplThreshold = 507;                   // frames

  typedef logic [FuncWidth-1:0] func_t;

  // ---- Whose turn ----
  logic  inside_q;                                              // between a frame's first and last beat
  func_t grant_q;                                               // who has, or had, the last turn
  func_t pick, grant;

  // The first that asks, counted from the one after the last turn.
  always_comb begin
    pick = grant_q;
    for (int unsigned i = NumFunc; i > 0; i--) begin
      if (s_axis_tvalid[func_t'((32'(grant_q) + i) % NumFunc)]) pick = func_t'((32'(grant_q) + i) % NumFunc);
    end
    grant = inside_q ? grant_q : pick;
  end

  logic [9:0] open_frames_q;                                    // started, completion not taken
  wire  may_load  = !m_axis_tvalid || m_axis_tready;
  wire  may_start = open_frames_q < 10'(CplThreshold) && !stop_i;
  wire  load      = s_axis_tvalid[grant] && may_load && (inside_q || may_start);
  wire  last      = s_axis_tlast[grant];
  wire  frame_start = load && !inside_q;
  wire  cpl_taken   = m_axis_cpl_tvalid && m_axis_cpl_tready;

  assign frames_open_o = open_frames_q != '0;

  always_comb begin
    s_axis_tready        = '0;
    s_axis_tready[grant] = load;
  end

  always_ff @(posedge axis_aclk) begin
    if (!stream_rstn) begin
      inside_q      <= 1'b0;
      grant_q       <= func_t'(NumFunc - 1);                    // function 0 has the first turn
      open_frames_q <= '0;
      m_axis_tvalid <= 1'b0;
    end else begin
      if (load) begin
        inside_q <= !last;
        grant_q  <= grant;
      end
      open_frames_q <= open_frames_q + 10'(frame_start) - 10'(cpl_taken);
      if (may_load) m_axis_tvalid <= load;
    end
  end

  // ---- Data ----
  wire [511:0] beat_data = s_axis_tdata[grant];

  always_ff @(posedge axis_aclk) begin
    if (load) begin
      m_axis_tdata    <= beat_data;
      m_axis_tlast    <= last;
      m_axis_ctrl_qid <= s_axis_ctrl_qid[grant];
      m_axis_ctrl_len <= s_axis_ctrl_len[grant];
      m_axis_mty      <= last ? 6'd0 - s_axis_ctrl_len[grant][5:0] : 6'd0;
      m_axis_tcrc     <= crc_after_beat(inside_q ? m_axis_tcrc : '1);
    end
  end

  // CRC of one word at a time by four tables, one for each byte of it: crc_rom[k] is byte k's share 32 bits later. To
  // a synthesizer they are constants and the whole an XOR tree; to a simulator 64 look-ups instead of 512 steps.
  localparam logic [31:0] CrcPolynomial = 32'h04C1_1DB7;
  logic [31:0] crc_rom [4][256];
  initial begin
    for (int unsigned k = 0; k < 4; k++) begin
      for (int unsigned value = 0; value < 256; value++) begin
        logic [31:0] state;
        state = 32'(value) << (8 * k);
        for (int unsigned step = 0; step < 32; step++)
          state = {state[30:0], 1'b0} ^ (state[31] ? CrcPolynomial : 32'd0);
        crc_rom[k][value] = state;
      end
    end
  end

  // Reads beat_data rather than take it as an argument, which a simulator would copy.
  function automatic logic [31:0] crc_after_beat(input logic [31:0] start);
    logic [31:0] crc;
    crc = start;
    for (int unsigned word = 16; word-- > 0;) begin
      crc ^= beat_data[32*word +: 32];
      crc = crc_rom[3][crc[31:24]] ^ crc_rom[2][crc[23:16]] ^ crc_rom[1][crc[15:8]] ^ crc_rom[0][crc[7:0]];
    end
    return crc;
  endfunction

  // ---- Completions ----
  typedef struct packed {
    logic [15:0] pkt_id;
    logic [15:0] len;
    logic [10:0] qid;
  } cpl_t;
  cpl_t              cpl;
  logic       [15:0] pkt_id_q;                                  // of the last frame taken; the first is 1
  logic              cpl_ready;
  wire               frame_taken = m_axis_tvalid && m_axis_tready && m_axis_tlast;
  wire [$clog2(CplDepth):0] unused_cpl_count;

  always_ff @(posedge axis_aclk) begin
    if (!stream_rstn)    pkt_id_q <= '0;
    else if (frame_taken) pkt_id_q <= pkt_id_q + 1'b1;
  end

  sync_fifo #(.Width($bits(cpl_t)), .Depth(CplDepth)) u_completions (
    .clk(axis_aclk), .rstn(stream_rstn),
    .wr_en_i(frame_taken), .wr_data_i({pkt_id_q + 16'd1, m_axis_ctrl_len, m_axis_ctrl_qid}), .wr_ready_o(cpl_ready),
    .rd_valid_o(m_axis_cpl_tvalid), .rd_data_o(cpl), .rd_en_i(cpl_taken),
    .count_o(unused_cpl_count)
  );

  assign m_axis_cpl_pkt_id = cpl.pkt_id;
  assign m_axis_cpl_len    = cpl.len;
  assign m_axis_cpl_qid    = cpl.qid;

  // The frame whose last beat stands in the output register is the last that was loaded, so grant_q names its function.
  always_comb begin
    frame_out_o          = '0;
    frame_out_o[grant_q] = frame_taken;
  end

  // ---- Rules of use ----
  `ONIC_ASSERT(CompletionRoom_A, axis_aclk, stream_rstn, !(frame_taken && !cpl_ready), "no room for a completion")
  `ONIC_ASSERT(OneGrant_A, axis_aclk, stream_rstn, $onehot0(s_axis_tready), "two functions were served at once")
  `ONIC_ASSERT(FrameWhole_A, axis_aclk, stream_rstn, !(load && inside_q && grant != grant_q),
               "a frame was cut by another function's")
  `ONIC_ASSERT_STABLE(DataStable_A, axis_aclk, stream_rstn, m_axis_tvalid, m_axis_tready, m_axis_tdata, 512,
                      "a C2H beat changed while the QDMA stalled it")
  `ONIC_ASSERT_STABLE(SideStable_A, axis_aclk, stream_rstn, m_axis_tvalid, m_axis_tready,
                      {m_axis_tlast, m_axis_tcrc, m_axis_ctrl_len, m_axis_ctrl_qid, m_axis_mty}, 66,
                      "a C2H beat's side fields changed while the QDMA stalled it")
  `ONIC_ASSERT_STABLE(CplStable_A, axis_aclk, stream_rstn, m_axis_cpl_tvalid, m_axis_cpl_tready, cpl, $bits(cpl_t),
                      "a completion changed while the QDMA stalled it")

  // Fairness: while a function asks, each other one may start at most one frame.
  for (genvar f = 0; f < NumFunc; f++) begin : gen_fair
    logic [2:0] passed_over_q;
    always_ff @(posedge axis_aclk) begin
      if (!stream_rstn || s_axis_tready[f] || !s_axis_tvalid[f]) passed_over_q <= '0;
      else if (frame_start)                                       passed_over_q <= passed_over_q + 1'b1;
    end
    `ONIC_ASSERT(Fair_A, axis_aclk, stream_rstn, 32'(passed_over_q) < NumFunc, "a function was passed over twice")
  end

  // ---- What a run should have seen ----
  always_ff @(posedge axis_aclk) begin
    if (stream_rstn) begin
      BackToBack_C: cover (frame_start && m_axis_tvalid && m_axis_tlast);
      HandOver_C: cover (frame_start && m_axis_tvalid && m_axis_tlast && grant != grant_q);
      CompletionsFull_C: cover (open_frames_q == 10'(CplThreshold));
    end
  end
endmodule
`default_nettype wire
