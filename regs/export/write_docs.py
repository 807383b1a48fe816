def files(tops, m, header): return {}
