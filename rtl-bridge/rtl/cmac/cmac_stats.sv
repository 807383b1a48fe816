// Statistics of one direction of the MAC: looks at a stream of frames, counts by PG203's classes.
//
// Accumulators are 48 bits and stop at their highest value. tick_i copies all of them to a snapshot, which is what
// software reads, and clears them; a frame that ends in that cycle is not lost. Sizes and bytes count the FCS.
//
// A frame is good if its error flag is down and its length within the limits. Slot n is the register at the direction's
// first address + 8*n; the same slots for both directions. Transmit leaves out what only a receiver can see.
//
// The header is kept from a frame's first beat and everything else happens once per frame, two cycles after its last
// beat, so that beats cost next to nothing in simulation.
// Source: driver.md section 7 (offsets); PG203 (meaning).
`default_nettype none
module cmac_stats #(
  parameter bit CheckLength = 1'b1                    // receive: limits apply. Transmit: none do
) (
  input  wire          clk,
  input  wire          rstn,
  input  wire   [15:0] min_len_i,                     // bytes with FCS, quasi static
  input  wire   [15:0] max_len_i,
  // Beats that count
  input  wire          beat_i,
  input  wire          first_i,
  input  wire          last_i,
  input  wire  [127:0] head_i,                        // the beat's first 16 bytes, byte 0 in bits 7:0
  input  wire   [15:0] len_i,                         // with last_i: bytes of the frame with FCS
  input  wire          err_i,                         // with last_i: bad FCS
  // Snapshot
  input  wire          tick_i,
  input  wire    [5:0] slot_i,
  output logic         slot_present_o,
  output logic  [47:0] count_o
);
  localparam int unsigned NumSlots = 34;

  typedef enum logic [5:0] {
    TotalPkts = 6'd0, GoodPkts, TotalBytes, GoodBytes,
    Pkt64, Pkt65To127, Pkt128To255, Pkt256To511, Pkt512To1023, Pkt1024To1518, Pkt1519To1522, Pkt1523To1548,
    Pkt1549To2047, Pkt2048To4095, Pkt4096To8191, Pkt8192To9215, PktLarge, PktSmall,
    Undersize, Fragment, Oversize, TooLong, Jabber, BadFcs, PktBadFcs, StompedFcs,
    Unicast, Multicast, Broadcast, Vlan, Pause, UserPause, InRangeErr, Truncated
  } slot_e;

  // Transmit has no counters for what only a receiver can see.
  localparam logic [NumSlots-1:0] TxHoles = 34'd1 << Undersize | 34'd1 << Fragment | 34'd1 << Oversize | 34'd1 << TooLong |
                                    34'd1 << Jabber | 34'd1 << PktBadFcs | 34'd1 << StompedFcs |
                                    34'd1 << InRangeErr | 34'd1 << Truncated;
  localparam logic [NumSlots-1:0] Present = CheckLength ? '1 : ~TxHoles;

  // ---- Stage 1: header and length ----
  logic        end_q, bad_fcs_q;
  logic [15:0] len_q, type_q;
  logic        group_q, all_q;                        // multicast bit; broadcast
  logic [15:0] opcode_q;

  always_ff @(posedge clk) begin
    end_q <= rstn && beat_i && last_i;
    if (beat_i && first_i) begin
      type_q    <= {head_i[8*12 +: 8], head_i[8*13 +: 8]};
      opcode_q  <= {head_i[8*14 +: 8], head_i[8*15 +: 8]};
      group_q   <= head_i[0];
      all_q     <= &head_i[47:0];
    end
    if (beat_i && last_i) begin
      len_q     <= len_i;
      bad_fcs_q <= err_i;
    end
  end

  // ---- Stage 2: classes ----
  wire        short_len = CheckLength && len_q < min_len_i;
  wire        long_len  = CheckLength && len_q > max_len_i;
  wire        good      = !bad_fcs_q && !short_len && !long_len;
  wire [15:0] payload   = len_q - 16'd18;             // without header and FCS
  wire        header    = good && len_q >= 16'd18;    // there is a header to look at
  wire        control   = header && type_q == 16'h8808 && len_q >= 16'd20;
  // A type of at most 1500 is the payload's length, which padding to 46 bytes may exceed.
  wire        bad_type  = type_q <= 16'd1500 && type_q != payload && !(payload == 16'd46 && type_q < 16'd46);

  logic        count_q;
  logic [NumSlots-1:0] hit_q;
  logic [15:0] bytes_q;
  always_ff @(posedge clk) begin
    count_q <= end_q && rstn;
    if (end_q) begin
      bytes_q              <= len_q;
      hit_q                <= '0;
      hit_q[TotalPkts]     <= 1'b1;
      hit_q[GoodPkts]      <= good;
      hit_q[TotalBytes]    <= 1'b1;
      hit_q[GoodBytes]     <= good;
      hit_q[Pkt64]         <= len_q == 16'd64;
      hit_q[Pkt65To127]    <= len_q >= 16'd65   && len_q <= 16'd127;
      hit_q[Pkt128To255]   <= len_q >= 16'd128  && len_q <= 16'd255;
      hit_q[Pkt256To511]   <= len_q >= 16'd256  && len_q <= 16'd511;
      hit_q[Pkt512To1023]  <= len_q >= 16'd512  && len_q <= 16'd1023;
      hit_q[Pkt1024To1518] <= len_q >= 16'd1024 && len_q <= 16'd1518;
      hit_q[Pkt1519To1522] <= len_q >= 16'd1519 && len_q <= 16'd1522;
      hit_q[Pkt1523To1548] <= len_q >= 16'd1523 && len_q <= 16'd1548;
      hit_q[Pkt1549To2047] <= len_q >= 16'd1549 && len_q <= 16'd2047;
      hit_q[Pkt2048To4095] <= len_q >= 16'd2048 && len_q <= 16'd4095;
      hit_q[Pkt4096To8191] <= len_q >= 16'd4096 && len_q <= 16'd8191;
      hit_q[Pkt8192To9215] <= len_q >= 16'd8192 && len_q <= 16'd9215;
      hit_q[PktLarge]      <= len_q > 16'd9215;
      hit_q[PktSmall]      <= len_q < 16'd64;
      hit_q[Undersize]     <= short_len && !bad_fcs_q;
      hit_q[Fragment]      <= short_len && bad_fcs_q;
      hit_q[Oversize]      <= long_len && !bad_fcs_q;
      hit_q[TooLong]       <= long_len;
      hit_q[Jabber]        <= long_len && bad_fcs_q;
      hit_q[BadFcs]        <= bad_fcs_q;
      hit_q[PktBadFcs]     <= bad_fcs_q && !short_len && !long_len;
      hit_q[Unicast]       <= header && !group_q;
      hit_q[Multicast]     <= header && group_q && !all_q;
      hit_q[Broadcast]     <= header && all_q;
      hit_q[Vlan]          <= header && type_q == 16'h8100;
      hit_q[Pause]         <= control && opcode_q == 16'h0001;
      hit_q[UserPause]     <= control && opcode_q == 16'h0101;
      hit_q[InRangeErr]    <= CheckLength && header && bad_type;
      // Stomped FCS and truncation can't happen here: frames come without FCS, and none is cut.
    end
  end

  // ---- Stage 3: accumulate. Two banks: one counts, the other is the snapshot. A slot without its bit in live_q or snap_q has
  // not been written since the bank's turn began and counts as 0, so that neither a tick nor a reset has to write the memory. ----
  logic          [47:0] bank_mem [2*NumSlots];
  logic                 bank_q;                       // the one that counts
  logic [NumSlots-1:0]  live_q, snap_q;               // written slots of the counting bank, and of the snapshot

  // A frame that is counted in the tick's cycle is the first of the new turn.
  wire                  bank = bank_q ^ tick_i;
  wire [NumSlots-1:0]   live = tick_i ? '0 : live_q;

  function automatic logic [6:0] address(logic which, logic [5:0] slot);
    return which ? 7'(slot) + 7'(NumSlots) : 7'(slot);
  endfunction

  function automatic logic [47:0] add_sat(logic [47:0] a, logic [15:0] b);
    logic [48:0] sum;
    sum = {1'b0, a} + 49'(b);
    return sum[48] ? '1 : sum[47:0];
  endfunction

  always_ff @(posedge clk) begin
    if (!rstn) begin
      bank_q <= 1'b0;
      live_q <= '0;
      snap_q <= '0;
    end else begin
      bank_q <= bank;
      live_q <= count_q ? live | hit_q : live;
      if (tick_i) snap_q <= live_q;
    end
  end

  always_ff @(posedge clk) begin
    if (count_q) begin
      for (int unsigned i = 0; i < NumSlots; i++) begin
        if (hit_q[i]) bank_mem[address(bank, 6'(i))] <= add_sat(
            live[i] ? bank_mem[address(bank, 6'(i))] : '0,
            i == 32'(TotalBytes) || i == 32'(GoodBytes) ? bytes_q : 16'd1);
      end
    end
  end

  assign slot_present_o = slot_i < 6'(NumSlots) && Present[slot_i];
  assign count_o        = slot_present_o && snap_q[slot_i] ? bank_mem[address(!bank_q, slot_i)] : '0;

  wire unused_source_address = ^head_i[95:48];
endmodule
`default_nettype wire
