// The RSS indirection table of one function, and the way from a hash to an absolute queue.
//
// entry = table[hash mod 128]. An entry that is not below the function's number of queues drops the frame; otherwise
// queue = (entry + base) mod 2048. Table and QCONF are read in the cycle in which the hash arrives, as they are then.
// Latency 1 cycle, one result for each hash, in order; outputs hold between results.
//
// Source: open-nic-shell src/qdma_subsystem/qdma_subsystem_function.sv, shell.md section 9.5. Upstream does not check
// the entry (quirk Q20).
`default_nettype none
module rss_indirection (
  input  wire         axis_aclk,
  input  wire         axis_aresetn,          // clears the table
  input  wire         stream_rstn,           // forgets the result on its way
  // Register access: reads show the entry in the same cycle
  input  wire         table_wr_i,
  input  wire   [6:0] table_addr_i,
  input  wire  [15:0] table_wdata_i,
  output logic [15:0] table_rdata_o,
  // QCONF
  input  wire  [15:0] q_base_i,              // absolute queue of entry value 0
  input  wire  [15:0] num_q_i,
  // Hashes in, with the frame's length
  input  wire         hash_valid_i,
  input  wire  [31:0] hash_i,
  input  wire  [15:0] hash_len_bytes_i,
  // Results out
  output logic        rss_valid_o,
  output logic [31:0] rss_hash_o,
  output logic [15:0] rss_entry_o,
  output logic        rss_drop_o,            // 1: the entry names no queue of this function
  output logic [10:0] rss_qid_o,             // absolute; meaningless if rss_drop_o
  output logic [15:0] rss_len_bytes_o
);
  // ---- Faults for the alarm tests: 1 takes the index from hash[7:1], 4 forgets the base. ----
  logic fault_index, fault_base;
`ifdef ONIC_FAULTS
  int unsigned fault;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  assign fault_index = fault == 1;
  assign fault_base  = fault == 4;
`else
  assign fault_index = 1'b0;
  assign fault_base  = 1'b0;
`endif

  logic [15:0] table_q [128];
  logic [15:0] entry;

  assign table_rdata_o = table_q[table_addr_i];
  assign entry         = table_q[fault_index ? hash_i[7:1] : hash_i[6:0]];

  always_ff @(posedge axis_aclk) begin
    if (!axis_aresetn) begin
      for (int unsigned i = 0; i < 128; i++) table_q[i] <= '0;
    end else if (table_wr_i) begin
      table_q[table_addr_i] <= table_wdata_i;
    end
  end

  always_ff @(posedge axis_aclk) begin
    rss_valid_o <= hash_valid_i && stream_rstn;
    if (hash_valid_i) begin
      rss_hash_o      <= hash_i;
      rss_entry_o     <= entry;
      rss_drop_o      <= entry >= num_q_i;
      rss_qid_o       <= entry[10:0] + (fault_base ? 11'd0 : q_base_i[10:0]);
      rss_len_bytes_o <= hash_len_bytes_i;
    end
  end

  // Queues are 11 bits wide; the base's upper bits are kept in QCONF only to be read back.
  wire unused_base = ^q_base_i[15:11];
endmodule
`default_nettype wire
