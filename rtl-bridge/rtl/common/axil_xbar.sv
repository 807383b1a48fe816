// AXI-Lite decoder: one master, NumSlaves windows, decode error elsewhere.
//
// One access is in progress at a time, in either direction; a write and a read that wait together take turns. Each slave
// sees addresses relative to its window's base. An address in no window answers DECERR (resp 3), with 0xDEADBEEF as read
// data. Every output is a register. Latency: 2 cycles to the slave, 1 back.
//
// A slave whose slave_live_i bit is low is in reset: its window answers OKAY and 0xDEADBEEF in its place, also an access that the
// reset cuts short. This is for slaves that can't answer in reset, such as a user plugin's; leave it open otherwise.
//
// Window i covers Base[i] .. Base[i]+Size[i]-1, all byte addresses; windows must not overlap.
`include "onic_assert.svh"
`default_nettype none
module axil_xbar #(
  parameter int unsigned               NumSlaves = 1,
  parameter bit [NumSlaves-1:0] [31:0] Base      = '0,
  parameter bit [NumSlaves-1:0] [31:0] Size      = '0          // bytes
) (
  input  wire                         axil_aclk,
  input  wire                         axil_aresetn,
  input  wire         [NumSlaves-1:0] slave_live_i = '1,
  // From the master
  input  wire                         s_axil_awvalid,
  input  wire                  [31:0] s_axil_awaddr,
  output logic                        s_axil_awready,
  input  wire                         s_axil_wvalid,
  input  wire                  [31:0] s_axil_wdata,
  output logic                        s_axil_wready,
  output logic                        s_axil_bvalid,
  output logic                  [1:0] s_axil_bresp,
  input  wire                         s_axil_bready,
  input  wire                         s_axil_arvalid,
  input  wire                  [31:0] s_axil_araddr,
  output logic                        s_axil_arready,
  output logic                        s_axil_rvalid,
  output logic                 [31:0] s_axil_rdata,
  output logic                  [1:0] s_axil_rresp,
  input  wire                         s_axil_rready,
  // To the slaves, slave 0 in the low bits
  output logic        [NumSlaves-1:0] m_axil_awvalid,
  output logic [NumSlaves-1:0] [31:0] m_axil_awaddr,
  input  wire         [NumSlaves-1:0] m_axil_awready,
  output logic        [NumSlaves-1:0] m_axil_wvalid,
  output logic [NumSlaves-1:0] [31:0] m_axil_wdata,
  input  wire         [NumSlaves-1:0] m_axil_wready,
  input  wire         [NumSlaves-1:0] m_axil_bvalid,
  input  wire  [NumSlaves-1:0]  [1:0] m_axil_bresp,
  output logic        [NumSlaves-1:0] m_axil_bready,
  output logic        [NumSlaves-1:0] m_axil_arvalid,
  output logic [NumSlaves-1:0] [31:0] m_axil_araddr,
  input  wire         [NumSlaves-1:0] m_axil_arready,
  input  wire         [NumSlaves-1:0] m_axil_rvalid,
  input  wire  [NumSlaves-1:0] [31:0] m_axil_rdata,
  input  wire  [NumSlaves-1:0]  [1:0] m_axil_rresp,
  output logic        [NumSlaves-1:0] m_axil_rready
);
  localparam logic [31:0] NoAnswer = 32'hDEAD_BEEF;
  localparam logic  [1:0] Okay     = 2'b00;
  localparam logic  [1:0] DecErr   = 2'b11;

  typedef enum logic [1:0] {Idle, WriteWait, ReadWait, Respond} state_e;
  state_e state_q;

  logic                 have_aw_q, have_w_q, have_ar_q;
  logic                 last_was_write_q;
  logic          [31:0] awaddr_q, araddr_q, wdata_q;
  logic [NumSlaves-1:0] sel_q;

  wire start_write = state_q == Idle && have_aw_q && have_w_q && !(have_ar_q && last_was_write_q);
  wire start_read  = state_q == Idle && have_ar_q && !start_write;

  // The window of the access about to start, and the address inside it.
  wire          [31:0] addr = start_write ? awaddr_q : araddr_q;
  logic [NumSlaves-1:0] hit;
  logic          [31:0] rel_addr;
  always_comb begin
    hit      = '0;
    rel_addr = addr;
    for (int unsigned i = 0; i < NumSlaves; i++) begin
      if (addr - Base[i] < Size[i]) begin
        hit[i]   = 1'b1;
        rel_addr = addr - Base[i];
      end
    end
  end

  // The answer of the selected slave.
  logic        slave_bvalid, slave_rvalid;
  logic  [1:0] slave_bresp, slave_rresp;
  logic [31:0] slave_rdata;
  always_comb begin
    slave_bvalid = |(m_axil_bvalid & sel_q);
    slave_rvalid = |(m_axil_rvalid & sel_q);
    slave_bresp  = '0;
    slave_rresp  = '0;
    slave_rdata  = '0;
    for (int unsigned i = 0; i < NumSlaves; i++) begin
      if (sel_q[i]) begin
        slave_bresp = slave_bresp | m_axil_bresp[i];
        slave_rresp = slave_rresp | m_axil_rresp[i];
        slave_rdata = slave_rdata | m_axil_rdata[i];
      end
    end
  end

  // The slave went into reset, or was in it: don't ask, don't wait.
  wire target_dead = hit != '0 && (hit & slave_live_i) == '0;
  wire slave_died  = (sel_q & slave_live_i) == '0;

  wire take_aw = s_axil_awvalid && s_axil_awready;
  wire take_w  = s_axil_wvalid && s_axil_wready;
  wire take_ar = s_axil_arvalid && s_axil_arready;

  always_ff @(posedge axil_aclk) begin
    if (!axil_aresetn) begin
      state_q          <= Idle;
      have_aw_q        <= 1'b0;
      have_w_q         <= 1'b0;
      have_ar_q        <= 1'b0;
      last_was_write_q <= 1'b0;
      sel_q            <= '0;
      s_axil_awready   <= 1'b0;
      s_axil_wready    <= 1'b0;
      s_axil_arready   <= 1'b0;
      s_axil_bvalid    <= 1'b0;
      s_axil_rvalid    <= 1'b0;
      m_axil_awvalid   <= '0;
      m_axil_wvalid    <= '0;
      m_axil_bready    <= '0;
      m_axil_arvalid   <= '0;
      m_axil_rready    <= '0;
    end else begin
      have_aw_q      <= (have_aw_q || take_aw) && !start_write;
      have_w_q       <= (have_w_q || take_w) && !start_write;
      have_ar_q      <= (have_ar_q || take_ar) && !start_read;
      s_axil_awready <= !(have_aw_q || take_aw) || start_write;
      s_axil_wready  <= !(have_w_q || take_w) || start_write;
      s_axil_arready <= !(have_ar_q || take_ar) || start_read;

      m_axil_awvalid <= m_axil_awvalid & ~m_axil_awready;
      m_axil_wvalid  <= m_axil_wvalid & ~m_axil_wready;
      m_axil_arvalid <= m_axil_arvalid & ~m_axil_arready;

      unique case (state_q)
        Idle: begin
          if (start_write || start_read) begin
            sel_q            <= hit;
            last_was_write_q <= start_write;
            state_q          <= hit == '0 || target_dead ? Respond : start_write ? WriteWait : ReadWait;
          end
          if (start_write) begin
            m_axil_awvalid <= hit & slave_live_i;
            m_axil_wvalid  <= hit & slave_live_i;
            m_axil_bready  <= hit & slave_live_i;
            s_axil_bvalid  <= hit == '0 || target_dead;
          end
          if (start_read) begin
            m_axil_arvalid <= hit & slave_live_i;
            m_axil_rready  <= hit & slave_live_i;
            s_axil_rvalid  <= hit == '0 || target_dead;
          end
        end
        WriteWait: if (slave_bvalid || slave_died) begin
          m_axil_awvalid <= '0;
          m_axil_wvalid  <= '0;
          m_axil_bready  <= '0;
          s_axil_bvalid  <= 1'b1;
          state_q        <= Respond;
        end
        ReadWait: if (slave_rvalid || slave_died) begin
          m_axil_arvalid <= '0;
          m_axil_rready  <= '0;
          s_axil_rvalid  <= 1'b1;
          state_q        <= Respond;
        end
        Respond: if ((s_axil_bvalid && s_axil_bready) || (s_axil_rvalid && s_axil_rready)) begin
          s_axil_bvalid <= 1'b0;
          s_axil_rvalid <= 1'b0;
          state_q       <= Idle;
        end
        default: state_q <= Idle;
      endcase
    end
  end

  always_ff @(posedge axil_aclk) begin
    if (take_aw) awaddr_q <= s_axil_awaddr;
    if (take_w)  wdata_q  <= s_axil_wdata;
    if (take_ar) araddr_q <= s_axil_araddr;
    if (start_write) begin
      m_axil_awaddr <= {NumSlaves{rel_addr}};
      m_axil_wdata  <= {NumSlaves{wdata_q}};
      s_axil_bresp  <= hit == '0 ? DecErr : Okay;    // stands if no slave is asked, or none answers
    end
    if (start_read) begin
      m_axil_araddr <= {NumSlaves{rel_addr}};
      s_axil_rresp  <= hit == '0 ? DecErr : Okay;
      s_axil_rdata  <= NoAnswer;
    end
    if (state_q == WriteWait && slave_bvalid && !slave_died) s_axil_bresp <= slave_bresp;
    if (state_q == ReadWait && slave_rvalid && !slave_died) begin
      s_axil_rresp <= slave_rresp;
      s_axil_rdata <= slave_rdata;
    end
  end

  `ONIC_ASSERT(AxilOneWindow_A, axil_aclk, axil_aresetn, $onehot0(hit), "an address lies in two windows")
  `ONIC_ASSERT_STABLE(AxilAwStable_A, axil_aclk, axil_aresetn, s_axil_awvalid, s_axil_awready, s_axil_awaddr, 32,
                      "AW changed while it waited")
  `ONIC_ASSERT_STABLE(AxilWStable_A, axil_aclk, axil_aresetn, s_axil_wvalid, s_axil_wready, s_axil_wdata, 32,
                      "W changed while it waited")
  `ONIC_ASSERT_STABLE(AxilArStable_A, axil_aclk, axil_aresetn, s_axil_arvalid, s_axil_arready, s_axil_araddr, 32,
                      "AR changed while it waited")
  `ONIC_ASSERT(AxilUnasked_A, axil_aclk, axil_aresetn,
               ((m_axil_bvalid & slave_live_i & ~m_axil_bready) == '0 || state_q == WriteWait) &&
               ((m_axil_rvalid & slave_live_i & ~m_axil_rready) == '0 || state_q == ReadWait),
               "a slave answers what nobody asked")
endmodule
`default_nettype wire
