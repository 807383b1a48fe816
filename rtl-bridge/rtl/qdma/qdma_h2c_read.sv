// H2C descriptors to data reads: takes turns between queues, keeps room, splits frames into reads.
//
//   qdma_h2c_schedule ── frame ──► frame_* (what the stream sends)
//        │ pop                └──► FIFO of 4 ─► split ─► rd_*, issue_* (what the reorder buffer expects)
//   room in the reorder buffer      ▲ qdma_h2c_tags
//
// A descriptor is popped only while the reorder buffer has room for the longest frame; the frame's own beats are then
// taken off. A read ends after read_bytes_i, at a 4 KiB boundary, or at the frame's end, so a frame has one read at most that
// is neither its last nor whole beats: the one that ends its first page. Reads of a frame follow one another, in order.
// 1 read a cycle, 1 frame a cycle; 3 cycles from a look to rd_valid_o. rd_valid_o and rd_o are registers.
//
// Fence: a frame is committed with its pop, and its reads need nothing but rd_ready_i and answers; qdma_h2c_reorder, which
// sees the last answer, tells when the frames before the fence have all of theirs.
// Source: qdma.md section 5.2.
`include "onic_assert.svh"
`default_nettype none
module qdma_h2c_read import qdma_pkg::*, qdma_h2c_pkg::*; #(
  parameter int unsigned NumQueue = 512                // 1 to 2048, a power of two
) (
  input  wire         clk,
  input  wire         rstn,                            // synchronous, active low, power-up only
  input  wire  [12:0] read_bytes_i,                    // 64 to 4096, a multiple of 64
  input  wire   [8:0] data_reads_i,                    // 1 to 256
  // Descriptor queues
  input  wire         news_valid_i,
  input  wire qid_t   news_qid_i,
  output qid_t        look_qid_o,
  input  wire desc_queue_t look_i,                     // one cycle after look_qid_o
  output logic        pop_valid_o,
  output qid_t        pop_qid_o,
  // Data reads; a tag comes back with the last beat of its answer
  output logic        rd_valid_o,
  output read_req_t   rd_o,
  input  wire         rd_ready_i,
  input  wire         give_i,
  input  wire [TagWidth-1:0] give_tag_i,
  // To the stream: frames in the cycle of their pop, reads before they are sent
  output logic        frame_valid_o,
  output frame_t      frame_o,
  output logic        issue_valid_o,
  output issue_t      issue_o,
  input  wire         start_i,                         // the stream is ready; stays high
  input  wire         free_i,                          // a beat of the reorder buffer is free again
  // Queues that can't go on
  input  wire         ended_i,                         // a frame has ended: its completion is settled
  output logic        zero_valid_o,
  output end_t        zero_o,
  input  wire         zero_ready_i,
  output logic        failed_valid_o,
  output failed_t     failed_o,
  input  wire         failed_ready_i,
  output logic        idle_o                           // each frame has ended, and no queue wants to send one
);
  localparam int unsigned RoomWidth = $clog2(ReorderBeats) + 1;

  // ---- Room. One beat more than the longest frame: a frame is in the stream's list a cycle after its last beat left. ----
  logic [RoomWidth-1:0] room_q, room_d;
  logic                 room_ok_q;
  logic          [11:0] frames_q;                      // popped, not ended

  always_comb begin
    room_d = room_q;
    if (frame_valid_o) room_d = room_d - RoomWidth'(frame_o.beats);
    if (free_i)        room_d = room_d + 1'b1;
  end

  always_ff @(posedge clk) begin
    if (!rstn) begin
      room_q    <= RoomWidth'(ReorderBeats);
      room_ok_q <= 1'b0;
      frames_q  <= '0;
    end else begin
      room_q    <= room_d;
      room_ok_q <= start_i && room_d > RoomWidth'(MaxFrameBeats);
      if (frame_valid_o != ended_i) frames_q <= ended_i ? frames_q - 1'b1 : frames_q + 1'b1;
    end
  end

  // ---- Frames ----
  logic   fetch_in_valid, fetch_ready, fetch_valid, fetch_take, schedule_idle;
  fetch_t fetch_in, fetch;
  wire [2:0] unused_count;

  qdma_h2c_schedule #(.NumQueue(NumQueue)) u_schedule (
    .clk, .rstn,
    .news_valid_i, .news_qid_i, .look_qid_o, .look_i, .pop_valid_o, .pop_qid_o,
    .room_i(room_ok_q), .frame_ready_i(fetch_ready),
    .frame_valid_o(fetch_in_valid), .fetch_o(fetch_in), .frame_o,
    .frames_ended_i(frames_q == '0), .zero_valid_o, .zero_o, .zero_ready_i, .failed_valid_o, .failed_o, .failed_ready_i,
    .idle_o(schedule_idle)
  );
  assign frame_valid_o = fetch_in_valid;
  assign idle_o        = schedule_idle && frames_q == '0;

  sync_fifo #(.Width($bits(fetch_t)), .Depth(4)) u_fetch (
    .clk, .rstn,
    .wr_en_i(fetch_in_valid), .wr_data_i(fetch_in), .wr_ready_o(fetch_ready),
    .rd_valid_o(fetch_valid), .rd_data_o(fetch), .rd_en_i(fetch_take), .count_o(unused_count)
  );

  // ---- Split ----
  logic        inside_q;                               // the frame's first read was sent
  addr_t       addr_q;                                 // of the rest
  logic [15:0] rest_q;                                 // bytes
  logic        tag_ready;
  logic [TagWidth-1:0] tag;
  place_t      place_q;
  number_t     number_q;

  addr_t       addr;
  logic [15:0] rest;
  logic [12:0] page_room, len;

  always_comb begin
    addr      = inside_q ? addr_q : fetch.addr;
    rest      = inside_q ? rest_q : fetch.len;
    page_room = 13'd4096 - 13'(addr[11:0]);
    len       = read_bytes_i < page_room ? read_bytes_i : page_room;
    if (rest < 16'(len)) len = rest[12:0];
  end

  wire issue = fetch_valid && tag_ready && (!rd_valid_o || rd_ready_i);
  wire last  = rest == 16'(len);

  qdma_h2c_tags u_tags (
    .clk, .rstn, .reads_i(data_reads_i), .ready_o(tag_ready), .tag_o(tag), .take_i(issue), .give_i, .give_tag_i
  );

  assign fetch_take    = issue && last;
  assign issue_valid_o = issue;
  assign issue_o       = '{tag: tag, place: place_q, number: number_q, beats: 7'((len + 13'd63) >> 6), last: last};

  always_ff @(posedge clk) begin
    if (!rstn) begin
      rd_valid_o <= 1'b0;
      inside_q   <= 1'b0;
      place_q    <= '0;
      number_q   <= '0;
    end else begin
      if (issue) begin
        rd_valid_o <= 1'b1;
        inside_q   <= !last;
        place_q    <= place_q + place_t'(issue_o.beats);
        number_q   <= number_q + 1'b1;
      end else if (rd_ready_i) begin
        rd_valid_o <= 1'b0;
      end
    end
    if (issue) begin
      rd_o   <= '{func: fetch.func, addr: addr, len: len, tag: tag};
      addr_q <= addr + 64'(len);
      rest_q <= rest - 16'(len);
    end
  end

  // ---- Rules of use ----
  `ONIC_ASSERT(RoomKept_A, clk, rstn, !frame_valid_o || room_q >= RoomWidth'(frame_o.beats),
               "a frame was popped without room for it")
  `ONIC_ASSERT(RoomBound_A, clk, rstn, room_q <= RoomWidth'(ReorderBeats), "more beats came free than were taken")
  `ONIC_ASSERT(EndedFrames_A, clk, rstn, !ended_i || frames_q != '0, "a frame ended that was not popped")
  `ONIC_ASSERT(ReadInPage_A, clk, rstn,
               !rd_valid_o || (rd_o.len != '0 && 14'(rd_o.addr[11:0]) + 14'(rd_o.len) <= 14'd4096),
               "a data read is empty or crosses 4 KiB")
  `ONIC_ASSERT_STABLE(ReadStable_A, clk, rstn, rd_valid_o, rd_ready_i, rd_o, $bits(read_req_t),
                      "a data read changed while it was stalled")
endmodule
`default_nettype wire
