// Compiled inside box_250mhz: the pass-through plugin. It uses reset pair 0; the others answer at once.
p2p_250mhz #(.NumFunc(NUM_PHYS_FUNC * NUM_QDMA), .NumPort(NUM_CMAC_PORT)) u_plugin (
  .s_axis_qdma_h2c_tvalid, .s_axis_qdma_h2c_tdata, .s_axis_qdma_h2c_tkeep, .s_axis_qdma_h2c_tlast,
  .s_axis_qdma_h2c_tuser_size, .s_axis_qdma_h2c_tuser_src, .s_axis_qdma_h2c_tready,
  .m_axis_qdma_c2h_tvalid, .m_axis_qdma_c2h_tdata, .m_axis_qdma_c2h_tkeep, .m_axis_qdma_c2h_tlast,
  .m_axis_qdma_c2h_tuser_size, .m_axis_qdma_c2h_tuser_src, .m_axis_qdma_c2h_tuser_dst, .m_axis_qdma_c2h_tready,
  .m_axis_adap_tx_250mhz_tvalid, .m_axis_adap_tx_250mhz_tdata, .m_axis_adap_tx_250mhz_tkeep, .m_axis_adap_tx_250mhz_tlast,
  .m_axis_adap_tx_250mhz_tuser_size, .m_axis_adap_tx_250mhz_tuser_src, .m_axis_adap_tx_250mhz_tuser_dst,
  .m_axis_adap_tx_250mhz_tready,
  .s_axis_adap_rx_250mhz_tvalid, .s_axis_adap_rx_250mhz_tdata, .s_axis_adap_rx_250mhz_tkeep, .s_axis_adap_rx_250mhz_tlast,
  .s_axis_adap_rx_250mhz_tuser_size, .s_axis_adap_rx_250mhz_tuser_src, .s_axis_adap_rx_250mhz_tready,
  .mod_rstn(mod_rstn[0]), .mod_rst_done(mod_rst_done[0]), .axil_aclk, .axis_aclk
);
assign mod_rst_done[15:1] = '1;
