// Register block of one port's MAC (BAR2 0x8000 + 0x4000 * port, 8 KiB), in the MAC's clock.
//
// The registers that drivers use, at the vendor IP's offsets: enables, flow control and RS-FEC (stored only), version
// 0x301, receive status (constant 3: the simulated cable is always in), and the statistics snapshot with its TICK.
// Bits without a field read 0. Everything else reads 0xDEADBEEF. Source: driver.md sections 3, 7, 8; PG203.
`default_nettype none
module cmac_register (
  input  wire         axil_aclk,
  input  wire         axil_aresetn,
  input  wire         s_axil_awvalid,
  input  wire  [31:0] s_axil_awaddr,
  output logic        s_axil_awready,
  input  wire         s_axil_wvalid,
  input  wire  [31:0] s_axil_wdata,
  output logic        s_axil_wready,
  output logic        s_axil_bvalid,
  output logic  [1:0] s_axil_bresp,
  input  wire         s_axil_bready,
  input  wire         s_axil_arvalid,
  input  wire  [31:0] s_axil_araddr,
  output logic        s_axil_arready,
  output logic        s_axil_rvalid,
  output logic [31:0] s_axil_rdata,
  output logic  [1:0] s_axil_rresp,
  input  wire         s_axil_rready,
  input  wire         cmac_clk,
  input  wire         cmac_rstn,
  output logic        tx_enable_o,
  output logic        rx_enable_o,
  // Statistics
  output logic        tick_o,
  output logic  [5:0] tx_slot_o,
  input  wire         tx_slot_present_i,
  input  wire  [47:0] tx_count_i,
  output logic  [5:0] rx_slot_o,
  input  wire         rx_slot_present_i,
  input  wire  [47:0] rx_count_i
);
  localparam logic [31:0] NoAnswer = 32'hDEAD_BEEF;

  import onic_regs_pkg::*;
  localparam logic [12:0] TxStats = CMAC_STAT_TX_TOTAL_PKTS[12:0];
  localparam logic [12:0] RxStats = CMAC_STAT_RX_TOTAL_PKTS[12:0];

  // Registers that hold what was written: address, and the bits that exist. Two of them have an effect.
  localparam int unsigned NumStored = 17;
  typedef struct packed {
    logic [31:0] addr;
    logic [31:0] mask;
  } stored_t;
  localparam stored_t [NumStored-1:0] Stored = '{
    '{CMAC_CONFIGURATION_RX_REG1, 32'h0000_0181},  // entry 16
    '{CMAC_CONFIGURATION_TX_FLOW_CONTROL_CONTROL_REG1, 32'h0000_01FF},
    '{CMAC_CONFIGURATION_TX_FLOW_CONTROL_REFRESH, 32'hFFFF_FFFF},
    '{CMAC_CONFIGURATION_TX_FLOW_CONTROL_REFRESH + 4, 32'hFFFF_FFFF},
    '{CMAC_CONFIGURATION_TX_FLOW_CONTROL_REFRESH + 8, 32'hFFFF_FFFF},
    '{CMAC_CONFIGURATION_TX_FLOW_CONTROL_REFRESH + 12, 32'hFFFF_FFFF},
    '{CMAC_CONFIGURATION_TX_FLOW_CONTROL_REFRESH_REG5, 32'h0000_FFFF},
    '{CMAC_CONFIGURATION_TX_FLOW_CONTROL_QUANTA, 32'hFFFF_FFFF},
    '{CMAC_CONFIGURATION_TX_FLOW_CONTROL_QUANTA + 4, 32'hFFFF_FFFF},
    '{CMAC_CONFIGURATION_TX_FLOW_CONTROL_QUANTA + 8, 32'hFFFF_FFFF},
    '{CMAC_CONFIGURATION_TX_FLOW_CONTROL_QUANTA + 12, 32'hFFFF_FFFF},
    '{CMAC_CONFIGURATION_TX_FLOW_CONTROL_QUANTA_REG5, 32'h0000_FFFF},
    '{CMAC_CONFIGURATION_RX_FLOW_CONTROL_CONTROL_REG1, 32'h0000_3DFF},
    '{CMAC_CONFIGURATION_RX_FLOW_CONTROL_CONTROL_REG2, 32'h0001_FFFF},
    '{CMAC_RSFEC_CONFIG_INDICATION_CORRECTION, 32'h0000_0007},
    '{CMAC_RSFEC_CONFIG_ENABLE, 32'h0000_0003},
    '{CMAC_CONFIGURATION_TX_REG1, 32'h0001_0039}  // entry 0
  };

  logic        reg_wr, reg_rd;
  logic [12:0] reg_addr;
  logic [31:0] reg_wdata, reg_rdata;
  axil_regs #(.AddrWidth(13)) u_regs (
    .axil_aclk, .axil_aresetn,
    .s_axil_awvalid, .s_axil_awaddr, .s_axil_awready, .s_axil_wvalid, .s_axil_wdata, .s_axil_wready,
    .s_axil_bvalid, .s_axil_bresp, .s_axil_bready, .s_axil_arvalid, .s_axil_araddr, .s_axil_arready,
    .s_axil_rvalid, .s_axil_rdata, .s_axil_rresp, .s_axil_rready,
    .reg_clk(cmac_clk), .reg_rstn(cmac_rstn), .reg_wr, .reg_rd, .reg_addr, .reg_wdata, .reg_rdata
  );

  // ---- Stored registers ----
  logic [NumStored-1:0][31:0] stored_q;
  always_ff @(posedge cmac_clk) begin
    if (!cmac_rstn) stored_q <= '0;
    else if (reg_wr) begin
      for (int i = 0; i < NumStored; i++) begin
        if (32'(reg_addr) == Stored[i].addr) stored_q[i] <= reg_wdata & Stored[i].mask;
      end
    end
  end
  assign tx_enable_o = stored_q[0][0];
  assign rx_enable_o = stored_q[NumStored-1][0];

  always_ff @(posedge cmac_clk) tick_o <= cmac_rstn && reg_wr && 32'(reg_addr) == CMAC_TICK && reg_wdata[0];

  // ---- Read ----
  wire [12:3] tx_word = reg_addr[12:3] - TxStats[12:3];   // 64-bit registers from the direction's first one
  wire [12:3] rx_word = reg_addr[12:3] - RxStats[12:3];
  assign tx_slot_o = tx_word[8:3];
  assign rx_slot_o = rx_word[8:3];
  wire is_tx_stat = tx_word[12:9] == '0 && tx_slot_present_i;
  wire is_rx_stat = rx_word[12:9] == '0 && rx_slot_present_i;
  wire [47:0] count = is_tx_stat ? tx_count_i : rx_count_i;

  always_ff @(posedge cmac_clk) begin
    if (reg_rd) begin
      reg_rdata <= NoAnswer;
      for (int i = 0; i < NumStored; i++) begin
        if (32'(reg_addr) == Stored[i].addr) reg_rdata <= stored_q[i];
      end
      unique case (32'(reg_addr))
        CMAC_CORE_VERSION:   reg_rdata <= CMAC_CORE_VERSION_RESET;
        CMAC_STAT_RX_STATUS: reg_rdata <= CMAC_STAT_RX_STATUS_RESET;
        CMAC_TICK:           reg_rdata <= '0;
        default:             ;
      endcase
      if ((is_tx_stat || is_rx_stat) && reg_addr[1:0] == '0) reg_rdata <= reg_addr[2] ? {16'd0, count[47:32]} : count[31:0];
    end
  end
endmodule
`default_nettype wire
