// Host to card: gives each frame from the QDMA to the function that owns its queue, with the length that it really has.
//
//   QDMA -> range match on the first beat, length -> FIFO of 4 beats -> box 250, stream f for function f
//
// Function f owns queue q if q_base[f] <= q < q_base[f] + num_q[f], the sum taken modulo 2^16; the lowest function wins
// where ranges overlap. The match holds for the whole frame. A frame that nobody owns is taken and thrown away, and
// frame_drop_o says so (upstream blocks for ever, quirk Q6).
//
// Length: tuser_mdata[15:0] of each beat is the frame's length, and tuser_size follows it. On the last beat, where tkeep
// is made from it, it is brought into the range that the number of beats allows, 64*(beats-1)+1 to 64*beats, so that a
// wrong length can't reach into the next frame (DESIGN section 5, "lengths never shift"). The beats before were sent
// by then: only of a frame with wrong metadata can tuser_size change, and then only on its last beat.
//
// tuser_src is 1 << f, tuser_dst 0. Latency 2 cycles, one beat per cycle; s_axis_tready is a register and does not
// depend on the queue. One slow function holds the others up, as upstream.
//
// A reset lets the frame that box 250 has seen a beat of pass to its end, and forgets the rest. Of a frame that was coming
// in and is forgotten, what still comes is dropped and counted as a frame that nobody owns.
//
// Source: open-nic-shell src/qdma_subsystem/qdma_subsystem_h2c.sv, shell.md section 10.
`include "onic_assert.svh"
`default_nettype none
module qdma_h2c #(
  parameter int unsigned NumFunc = 1                            // 1 to 4
) (
  input  wire                  axis_aclk,
  input  wire                  axis_pwr_rstn,                   // power-up
  input  wire                  axis_aresetn,                    // the block's reset
  // QCONF of each function
  input  wire           [15:0] q_base_i [NumFunc],
  input  wire           [15:0] num_q_i  [NumFunc],
  // Frames from the QDMA
  input  wire                  s_axis_tvalid,
  input  wire          [511:0] s_axis_tdata,
  input  wire                  s_axis_tlast,
  input  wire           [10:0] s_axis_tuser_qid,
  input  wire           [15:0] s_axis_tuser_len,                // tuser_mdata[15:0]
  output logic                 s_axis_tready,
  // Frames to box 250
  output logic   [NumFunc-1:0] m_axis_tvalid,
  output logic [NumFunc*512-1:0] m_axis_tdata,
  output logic [NumFunc*64-1:0] m_axis_tkeep,
  output logic   [NumFunc-1:0] m_axis_tlast,
  output logic [NumFunc*16-1:0] m_axis_tuser_size,
  output logic [NumFunc*16-1:0] m_axis_tuser_src,
  output logic [NumFunc*16-1:0] m_axis_tuser_dst,
  input  wire    [NumFunc-1:0] m_axis_tready,
  // Events, one cycle for each frame whose last beat was taken
  output logic   [NumFunc-1:0] frame_in_o,                      // by the function that owns it
  output logic                 frame_drop_o                     // nobody owns it
);
  // ---- Fault 3 for the alarm tests: the last beat's mask is one byte short, and tuser_size with it. ----
  logic fault_mask;
`ifdef ONIC_FAULTS
  int unsigned fault;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  assign fault_mask = fault == 3;
`else
  assign fault_mask = 1'b0;
`endif

  // ---- Reset: waits for a beat that is offered and for a frame that is half out ----
  logic stop, stream_rstn;
  logic offered_q;                                              // the head was offered and not taken
  logic half_out_q;                                             // box 250 has a frame's first beat, not its last

  qdma_stream_reset u_reset (
    .axis_aclk, .axis_pwr_rstn, .axis_aresetn, .open_i(offered_q || half_out_q), .stop_o(stop), .rstn_o(stream_rstn)
  );

  // ---- Owner ----
  logic               inside_q;                                 // the next beat is not a frame's first
  logic [NumFunc-1:0] match, owner, owner_q;                    // one-hot, or 0: nobody

  always_comb begin
    match = '0;
    for (int unsigned f = NumFunc; f-- > 0;) begin
      if (16'(s_axis_tuser_qid) >= q_base_i[f] && 16'(s_axis_tuser_qid) < q_base_i[f] + num_q_i[f])
        match = NumFunc'(1) << f;
    end
    owner = inside_q ? owner_q : match;
  end

  wire  beat_taken = s_axis_tvalid && s_axis_tready;

  always_ff @(posedge axis_aclk) begin
    if (!axis_pwr_rstn)  inside_q <= 1'b0;
    else if (beat_taken) inside_q <= !s_axis_tlast;
    if (!stream_rstn)    owner_q <= '0;
    else if (beat_taken) owner_q <= owner;
  end

  // ---- Length ----
  logic  [9:0] beats_before_q;                                  // of this frame; saturates, no length reaches further
  logic [15:0] len_min_bytes, size;
  logic [16:0] len_max_bytes;

  always_ff @(posedge axis_aclk) begin
    if (!axis_pwr_rstn || (beat_taken && s_axis_tlast)) beats_before_q <= '0;
    else if (beat_taken && beats_before_q != '1)        beats_before_q <= beats_before_q + 1'b1;
  end

  always_comb begin
    len_min_bytes = {beats_before_q, 6'd1};
    len_max_bytes = {1'b0, beats_before_q, 6'd0} + 17'd64;
    size          = s_axis_tuser_len;
    if (s_axis_tlast) begin
      if (s_axis_tuser_len < len_min_bytes)               size = len_min_bytes;
      else if (17'(s_axis_tuser_len) > len_max_bytes)     size = len_max_bytes[15:0];
      if (fault_mask && size[5:0] != 6'd1) size = size - 16'd1;
    end
  end

  // ---- Beats ----
  typedef struct packed {
    logic [NumFunc-1:0] owner;
    logic        [15:0] size;
    logic               last;
    logic       [511:0] data;
  } beat_t;
  beat_t      head;
  logic       head_valid, head_pop;
  wire  [2:0] unused_count;

  sync_fifo #(.Width($bits(beat_t)), .Depth(4)) u_beats (
    .clk(axis_aclk), .rstn(stream_rstn),
    .wr_en_i(beat_taken && owner != '0), .wr_data_i({owner, size, s_axis_tlast, s_axis_tdata}),
    .wr_ready_o(s_axis_tready),
    .rd_valid_o(head_valid), .rd_data_o(head), .rd_en_i(head_pop),
    .count_o(unused_count)
  );

  logic [63:0] keep;
  always_comb begin
    keep = '1;
    if (head.last) keep = keep >> (6'd0 - head.size[5:0]);
  end

  // ---- Out ----
  wire offer = head_valid && (offered_q || half_out_q || !stop);

  always_ff @(posedge axis_aclk) begin
    offered_q <= axis_pwr_rstn && offer && !head_pop;
    if (!axis_pwr_rstn) half_out_q <= 1'b0;
    else if (head_pop)  half_out_q <= !head.last;
  end

  assign m_axis_tvalid     = offer ? head.owner : '0;
  assign m_axis_tdata      = {NumFunc{head.data}};
  assign m_axis_tkeep      = {NumFunc{keep}};
  assign m_axis_tlast      = {NumFunc{head.last}};
  assign m_axis_tuser_size = {NumFunc{head.size}};
  assign m_axis_tuser_dst  = '0;
  for (genvar f = 0; f < NumFunc; f++) begin : gen_src
    assign m_axis_tuser_src[16*f +: 16] = 16'(1 << f);
  end
  assign head_pop          = |(m_axis_tvalid & m_axis_tready);

  assign frame_in_o        = beat_taken && s_axis_tlast ? owner : '0;
  assign frame_drop_o      = beat_taken && s_axis_tlast && owner == '0;

  // ---- Rules of use ----
  `ONIC_ASSERT(OwnerOneHot_A, axis_aclk, stream_rstn, !head_valid || $onehot(head.owner), "a beat has not one owner")
  `ONIC_ASSERT_STABLE(QdmaStable_A, axis_aclk, stream_rstn, s_axis_tvalid, s_axis_tready, s_axis_tdata, 512,
                      "the QDMA changed an H2C beat while it was stalled")
  `ONIC_ASSERT_STABLE(QdmaSideStable_A, axis_aclk, stream_rstn, s_axis_tvalid, s_axis_tready,
                      {s_axis_tlast, s_axis_tuser_qid, s_axis_tuser_len}, 28,
                      "the QDMA changed tlast, qid or metadata of an H2C beat while it was stalled")
  `ONIC_ASSERT_STABLE(HeadStable_A, axis_aclk, stream_rstn, offer, head_pop, {head.owner, head.size, head.last},
                      NumFunc + 17, "an H2C beat changed while box 250 stalled it")

  // ---- What a run should have seen ----
  always_ff @(posedge axis_aclk) begin
    if (stream_rstn) begin
      NoFunction_C: cover (frame_drop_o);
      LengthCorrected_C: cover (beat_taken && s_axis_tlast && size != s_axis_tuser_len);
    end
  end
endmodule
`default_nettype wire
