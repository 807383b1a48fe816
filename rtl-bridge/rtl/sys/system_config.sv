// System configuration page (BAR2 0x0000): build timestamp, reset requests, reset status.
//
// Writing a request bit pulls the module's mod_rstn low for one cycle; the module's own generator (mod_reset) does the
// rest and answers with mod_rst_done. Status bits are those answers, with a request taken out in the same cycle: a bit
// reads 0 from the write on until the module is out of reset (upstream reads 1 all the way, quirk Q1). Bits without a
// module must be driven 1 from outside. While axil_aresetn is low every request line is held.
//
// Registers answer as soon as axil_aresetn is high. Source: shell.md section 7.1.
`default_nettype none
module system_config #(
  parameter logic [31:0] BuildTimestamp = 32'h0101_0000
) (
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
  // Reset requests (low) and answers, one bit for each module
  output logic [31:0] shell_rstn_o,
  input  wire  [31:0] shell_rst_done_i,
  output logic [31:0] user_rstn_o,
  input  wire  [31:0] user_rst_done_i
);
  import onic_regs_pkg::*;

  localparam logic [31:0] NoAnswer = 32'hDEAD_BEEF;

  logic        reg_wr, reg_rd;
  logic [11:0] reg_addr;
  logic [31:0] reg_wdata, reg_rdata;

  axil_regs #(.AddrWidth(12)) u_regs (
    .axil_aclk, .axil_aresetn,
    .s_axil_awvalid, .s_axil_awaddr, .s_axil_awready, .s_axil_wvalid, .s_axil_wdata, .s_axil_wready,
    .s_axil_bvalid, .s_axil_bresp, .s_axil_bready, .s_axil_arvalid, .s_axil_araddr, .s_axil_arready,
    .s_axil_rvalid, .s_axil_rdata, .s_axil_rresp, .s_axil_rready,
    .reg_clk(axil_aclk), .reg_rstn(axil_aresetn), .reg_wr, .reg_rd, .reg_addr, .reg_wdata, .reg_rdata
  );

  always_ff @(posedge axil_aclk) begin
    if (!axil_aresetn) begin
      shell_rstn_o <= '0;
      user_rstn_o  <= '0;
    end else begin
      shell_rstn_o <= '1;
      user_rstn_o  <= '1;
      if (reg_wr) begin
        unique case (32'(reg_addr))
          SYSTEM_CONFIG_SYSTEM_RESET: begin
            shell_rstn_o <= '0;
            user_rstn_o  <= '0;
          end
          SYSTEM_CONFIG_SHELL_RESET: shell_rstn_o <= ~reg_wdata;
          SYSTEM_CONFIG_USER_RESET:  user_rstn_o  <= ~reg_wdata;
          default: ;
        endcase
      end
    end
  end

  // A module that has just been asked has not answered yet.
  wire [31:0] shell_status = shell_rst_done_i & shell_rstn_o;
  wire [31:0] user_status  = user_rst_done_i & user_rstn_o;

  always_ff @(posedge axil_aclk) begin
    if (reg_rd) begin
      unique case (32'(reg_addr))
        SYSTEM_CONFIG_BUILD_TIMESTAMP: reg_rdata <= BuildTimestamp;
        SYSTEM_CONFIG_SYSTEM_STATUS:   reg_rdata <= {31'd0, &shell_status && &user_status};
        SYSTEM_CONFIG_SHELL_STATUS:    reg_rdata <= shell_status;
        SYSTEM_CONFIG_USER_STATUS:     reg_rdata <= user_status;
        default:                       reg_rdata <= NoAnswer;
      endcase
    end
  end
endmodule
`default_nettype wire
