//! Plain tables for people: columns as wide as they need, numbers to the right.

/// Rows under a header, two blanks between columns. Columns whose header starts with `>` are set to the right.
pub(super) fn print(header: &[&str], rows: &[Vec<String>]) -> String {
    let title = |h: &str| h.trim_start_matches('>').to_string();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .chain([title(header[column]).len()])
            .max()
    };
    let widths: Vec<usize> = (0..header.len()).map(|column| width(column).unwrap_or(0)).collect();
    let line = |cells: Vec<String>| {
        let padded: Vec<String> = cells
            .iter()
            .zip(header.iter().zip(&widths))
            .map(
                |(cell, (h, &width))| {
                    if h.starts_with('>') { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
                },
            )
            .collect();
        padded.join("  ").trim_end().to_string() + "\n"
    };
    let mut out = line(header.iter().map(|h| title(h)).collect());
    rows.iter().for_each(|row| out += &line(row.clone()));
    out
}
