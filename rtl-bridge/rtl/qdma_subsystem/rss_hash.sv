// OpenNIC's RSS hash of each frame: one result for each frame, in order, whatever stalls lie between its beats.
//
// Tuple: protocol, source, destination and the four bytes after the header (the "ports", for every protocol, fragment
// or not) of an IPv4 packet that is untagged or behind one 0x8100 tag. A header length under 5 words has no ports. Any
// other frame hashes to 0, and the VLAN id never counts. Bytes past the frame's end count as 0.
//
// Function: bit i of the tuple, if set, adds key[i+31:i] modulo 2. Bits are numbered in wire order, least significant
// bit of each byte first, and bits 3:0 (upstream's VLAN nibble) are always 0. This is not Microsoft's Toeplitz.
//
// The header lies in the first 82 bytes, so it is complete with the first beat of a one-beat frame and with the second
// of any other. Latency 3 cycles from the beat that completes the header; one frame per cycle.
//
// Source: open-nic-shell src/qdma_subsystem/qdma_subsystem_hash.sv, as measured in shell.md section 9; upstream's
// quirks Q3 (stalls), Q18 (VLAN nibble) and the stale header tail are not reproduced.
`include "onic_assert.svh"
`default_nettype none
module rss_hash (
  input  wire          axis_aclk,
  input  wire          axis_aresetn,
  // Beats of frames as they are taken; no back-pressure
  input  wire          beat_valid_i,
  input  wire  [511:0] beat_data_i,          // byte 0 of the frame in bits 7:0 of its first beat
  input  wire          beat_last_i,
  input  wire   [15:0] frame_len_bytes_i,    // of the whole frame, valid with its first beat
  // Key: register word i in bits 32i+31:32i
  input  wire  [319:0] hash_key_i,
  // One result for each frame
  output logic         hash_valid_o,
  output logic  [31:0] hash_o,
  output logic  [15:0] hash_len_bytes_o      // the frame's length, beside its hash
);
  // The header buffer starts at the EtherType: byte 12 of the frame is its byte 0.
  localparam int unsigned FirstByte       = 12;
  localparam int unsigned HeadBytes       = 64 - FirstByte;          // of them from the first beat
  localparam int unsigned TailBytes       = 18;                      // from the second: up to byte 81
  localparam int unsigned HeaderBits      = 8 * (HeadBytes + TailBytes);
  localparam int unsigned UntaggedIpStart = 14;                      // frame byte of the IPv4 header
  localparam int unsigned TaggedIpStart   = 18;

  localparam logic [15:0] EtherTypeIpv4 = 16'h0008;                  // 08 00 and 81 00 as they lie in tdata
  localparam logic [15:0] EtherTypeVlan = 16'h0081;

  // Tuple bits, counted from the lowest that can be set; key windows start at the same index plus VlanBits.
  localparam int unsigned VlanBits = 4;

  typedef struct packed {
    logic [31:0] ports;
    logic [31:0] dst;
    logic [31:0] src;
    logic  [7:0] proto;
  } tuple_t;                                                         // 104 bits, wire order from bit 0

  // ---- Faults for the alarm tests: 2 ignores key word 4, 3 has the last beat's mask one byte short, so that the frame
  // loses its last byte, for its hash and for its length (but never a whole beat). ----
  logic fault_mask;
`ifdef ONIC_FAULTS
  int unsigned fault;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  wire fault_key_word = fault == 2;
  assign fault_mask   = fault == 3;
`else
  assign fault_mask = 1'b0;
`endif

  // ---- Capture ----
  typedef enum logic [1:0] {First, Second, Rest} beat_e;             // which beat comes next
  beat_e                 beat_q;
  logic                  header_valid_q;
  logic [HeaderBits-1:0] header_q;
  logic           [15:0] len_bytes_q;

  always_ff @(posedge axis_aclk) begin
    header_valid_q <= 1'b0;
    if (!axis_aresetn) begin
      beat_q <= First;
    end else if (beat_valid_i) begin
      unique case (beat_q)
        First:   header_valid_q <= beat_last_i;
        Second:  header_valid_q <= 1'b1;
        default: header_valid_q <= 1'b0;
      endcase
      if (beat_last_i)          beat_q <= First;
      else if (beat_q == First) beat_q <= Second;
      else                      beat_q <= Rest;
    end
  end

  // What a one-beat frame leaves of its predecessor in the tail is past its end, and masked below.
  always_ff @(posedge axis_aclk) begin
    if (beat_valid_i && beat_q == First) begin
      header_q[8*HeadBytes-1:0] <= beat_data_i[511:8*FirstByte];
      len_bytes_q               <= frame_len_bytes_i - 16'(fault_mask && frame_len_bytes_i[5:0] != 6'd1);
    end
    if (beat_valid_i && beat_q == Second) header_q[HeaderBits-1:8*HeadBytes] <= beat_data_i[8*TailBytes-1:0];
  end

  // ---- Tuple. The functions here read registers rather than take them as arguments: a simulator would copy those, 70
  // bytes at a time. ----
  // Four bytes from frame byte `first` on, those at or past the frame's end as 0.
  function automatic logic [31:0] header_word(input logic [7:0] first);
    logic [31:0] bytes;
    logic [15:0] inside_bytes;
    bytes        = header_q[10'(8 * (32'(first) - FirstByte)) +: 32];
    inside_bytes = len_bytes_q > 16'(first) ? len_bytes_q - 16'(first) : 16'd0;
    unique case (inside_bytes)
      16'd0:   return 32'd0;
      16'd1:   return bytes & 32'h0000_00FF;
      16'd2:   return bytes & 32'h0000_FFFF;
      16'd3:   return bytes & 32'h00FF_FFFF;
      default: return bytes;
    endcase
  endfunction

  function automatic tuple_t tuple_of_header();
    tuple_t      tuple;
    logic [19:0] outer;                                              // EtherType, then the IHL if untagged
    logic [19:0] inner;                                              // the same behind one tag
    logic        has_tag;
    logic  [7:0] ip_start;
    logic  [3:0] ihl_words;
    outer   = 20'(header_word(8'd12));
    inner   = 20'(header_word(8'd16));
    has_tag = outer[15:0] == EtherTypeVlan;
    tuple   = '0;
    if (has_tag ? inner[15:0] == EtherTypeIpv4 : outer[15:0] == EtherTypeIpv4) begin
      ip_start    = has_tag ? 8'(TaggedIpStart) : 8'(UntaggedIpStart);
      ihl_words   = has_tag ? inner[19:16] : outer[19:16];
      tuple.proto = 8'(header_word(ip_start + 8'd9));
      tuple.src   = header_word(ip_start + 8'd12);
      tuple.dst   = header_word(ip_start + 8'd16);
      if (ihl_words >= 4'd5) tuple.ports = header_word(ip_start + {2'b00, ihl_words, 2'b00});
    end
    return tuple;
  endfunction

  logic         tuple_valid_q;
  tuple_t       tuple_q;
  logic  [15:0] tuple_len_bytes_q;
  logic [319:0] hash_key;

  always_ff @(posedge axis_aclk) begin
    tuple_valid_q <= header_valid_q && axis_aresetn;
    if (header_valid_q) begin
      tuple_q           <= tuple_of_header();
      tuple_len_bytes_q <= len_bytes_q;
    end
  end

  // ---- Hash ----
  // Window by window from a 64-bit piece of the key for every 32 bits: the same function as key[i +: 32] of the whole
  // key, at half the simulation time.
  function automatic logic [31:0] hash_of_tuple();
    logic [127:0] bits;
    logic  [63:0] piece;
    logic  [31:0] sum;
    bits = {20'd0, tuple_q, {VlanBits{1'b0}}};
    sum  = '0;
    for (int unsigned word = 0; word < 4; word++) begin
      piece = hash_key[32*word +: 64];
      for (int unsigned b = 0; b < 32; b++)
        sum ^= bits[32*word+b] ? piece[b +: 32] : 32'd0;
    end
    return sum;
  endfunction

`ifdef ONIC_FAULTS
  assign hash_key = fault_key_word ? hash_key_i & ~(320'hFFFF_FFFF << 128) : hash_key_i;
`else
  assign hash_key = hash_key_i;
`endif

  always_ff @(posedge axis_aclk) begin
    hash_valid_o <= tuple_valid_q && axis_aresetn;
    if (tuple_valid_q) begin
      hash_o           <= hash_of_tuple();
      hash_len_bytes_o <= tuple_len_bytes_q;
    end
  end

  // ---- Rules of use ----
  // The header is complete at the latest with the second beat: no frame can wait for one that never comes.
  `ONIC_ASSERT(HeaderOnePerFrame_A, axis_aclk, axis_aresetn, !(header_valid_q && beat_q == Second),
               "a header is complete before its second beat")

  // ---- What a run should have seen ----
  always_ff @(posedge axis_aclk) begin
    if (axis_aresetn) begin
      OneBeat_C: cover (beat_valid_i && beat_q == First && beat_last_i);
      TwoBeats_C: cover (beat_valid_i && beat_q == Second && beat_last_i);
      ManyBeats_C: cover (beat_valid_i && beat_q == Rest && beat_last_i);
      // The place of upstream's quirk Q3, whose cause may be a gap in the stream or a stall: no beat is taken here.
      GapBeforeSecond_C: cover (!beat_valid_i && beat_q == Second);
    end
  end
endmodule
`default_nettype wire
