// Compiled inside box_250mhz: the pass-through plugin's registers. It needs no net of its own.
p2p_address_map #(.Prefix(16'hB000)) u_address_map (
  .axil_aclk, .axil_aresetn(internal_box_rstn),
  .s_axil_awvalid, .s_axil_awaddr, .s_axil_awready, .s_axil_wvalid, .s_axil_wdata, .s_axil_wready,
  .s_axil_bvalid, .s_axil_bresp, .s_axil_bready, .s_axil_arvalid, .s_axil_araddr, .s_axil_arready,
  .s_axil_rvalid, .s_axil_rdata, .s_axil_rresp, .s_axil_rready
);
