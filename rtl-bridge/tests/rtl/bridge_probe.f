bridge_probe.sv
