// What the parts of the packet adapter share: the reasons for which a frame ends there, and the buffer's depth.
package packet_adapter_pkg;
  // A frame's end, as the monitor ports of the top give it. RX and TX number their reasons separately.
  localparam logic [3:0] ReasonAccepted = 4'd0;
  localparam logic [3:0] ReasonOverflow = 4'd1;       // RX
  localparam logic [3:0] ReasonError    = 4'd2;       // RX
  localparam logic [3:0] ReasonTooLong  = 4'd3;       // RX
  localparam logic [3:0] ReasonDisabled = 4'd4;       // RX
  localparam logic [3:0] ReasonTxDst     = 4'd1;
  localparam logic [3:0] ReasonTxTooLong = 4'd2;

  // Depth of each buffer in beats: 1.5 times the beats of the longest frame, rounded up, then up to a power of two. The
  // same as upstream's real-valued 2^ceil(log2(ceil(MAX_PKT_LEN * 8 / 512 * 1.5))), in integers: MAX_PKT_LEN * 1.5 / 64
  // is MAX_PKT_LEN * 3 / 128. Source: shell.md section 12.
  function automatic int unsigned buffer_depth_beats(int unsigned max_pkt_len);
    return 1 << $clog2((max_pkt_len * 3 + 127) / 128);
  endfunction
endpackage
