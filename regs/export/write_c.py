def header(tops, m, header): return ""
