// Compiled inside box_322mhz: the pass-through plugin. Wires, so there is nothing in it that a reset would change; reset
// pair 0 has a generator all the same, since software asks for it. The other pairs answer at once.
assign m_axis_cmac_tx_tvalid           = s_axis_adap_tx_322mhz_tvalid;
assign m_axis_cmac_tx_tdata            = s_axis_adap_tx_322mhz_tdata;
assign m_axis_cmac_tx_tkeep            = s_axis_adap_tx_322mhz_tkeep;
assign m_axis_cmac_tx_tlast            = s_axis_adap_tx_322mhz_tlast;
assign m_axis_cmac_tx_tuser_err        = s_axis_adap_tx_322mhz_tuser_err;
assign s_axis_adap_tx_322mhz_tready    = m_axis_cmac_tx_tready;
assign m_axis_adap_rx_322mhz_tvalid    = s_axis_cmac_rx_tvalid;
assign m_axis_adap_rx_322mhz_tdata     = s_axis_cmac_rx_tdata;
assign m_axis_adap_rx_322mhz_tkeep     = s_axis_cmac_rx_tkeep;
assign m_axis_adap_rx_322mhz_tlast     = s_axis_cmac_rx_tlast;
assign m_axis_adap_rx_322mhz_tuser_err = s_axis_cmac_rx_tuser_err;

wire unused_plugin_rstn;
mod_reset u_plugin_reset (
  .axil_aclk, .axil_aresetn(1'b1), .mod_rstn_i(mod_rstn[0]), .rstn_o(unused_plugin_rstn), .mod_rst_done_o(mod_rst_done[0])
);
assign mod_rst_done[7:1] = '1;
