//! SVG plots: for each program, its rows with a dot a contestant, at its figure over the best peer's.

use crate::contestant::HOMENODE;
use crate::error::{Error, Result};
use crate::verdict::{Figure, Report, Row};
use plotters::prelude::*;
use std::fmt::Display;
use std::path::Path;

/// Pixels.
const WIDTH: u32 = 960;
const ROW_HEIGHT: u32 = 34;
/// Heading, axis and its text.
const FRAME_HEIGHT: u32 = 110;
const LABEL_WIDTH: u32 = 170;
const LEGEND_WIDTH: u32 = 190;
const LEGEND_INDENT: i32 = 20;
const LEGEND_HEIGHT: i32 = 22;
const DOT: i32 = 4;
const OWN_DOT: i32 = 6;
/// Rows that the legend is as high as.
const FEWEST_ROWS: usize = 4;
/// The axis goes so much further than the dots.
const EDGE: f64 = 1.1;

/// Ratios beyond these stand at the edge.
const LOWEST: f64 = 0.2;
const HIGHEST: f64 = 50.0;

/// A contestant's dots: name, and ratio in each of the plot's rows.
struct Dots {
    name: String,
    own: bool,
    ratios: Vec<(usize, f64)>,
}

/// Writes one plot a program into `folder`.
///
/// # Errors
/// When a file cannot be written.
pub fn write(report: &Report, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    for rows in report.rows.chunk_by(|a, b| a.program == b.program) {
        let path = folder.join(rows[0].program).with_extension("svg");
        let failed = |e: &dyn Display| Error::Plot(path.clone(), e.to_string());
        draw(rows, &report.others(), &path).map_err(|e| failed(&e))?;
    }
    Ok(())
}

fn dots(rows: &[Row]) -> Vec<Dots> {
    let mut all: Vec<Dots> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let Some(best) = row.others.iter().find(|figure| figure.name == row.best) else {
            continue;
        };
        let mut place = |figure: &Figure, own: bool| {
            let ratio = (figure.typical / best.typical).clamp(LOWEST, HIGHEST);
            match all.iter_mut().find(|dots| dots.name == figure.name) {
                Some(dots) => dots.ratios.push((index, ratio)),
                None => {
                    let name = figure.name.clone();
                    all.push(Dots { name, own, ratios: vec![(index, ratio)] });
                }
            }
        };
        row.others.iter().for_each(|figure| place(figure, false));
        row.own.iter().for_each(|own| place(&own.figure, true));
    }
    all
}

type DrawResult = std::result::Result<(), Box<dyn std::error::Error>>;
type Place = SegmentValue<usize>;

/// The peers among `others` have one colour each in all plots.
fn draw(rows: &[Row], others: &[String], path: &Path) -> DrawResult {
    let height = FRAME_HEIGHT + ROW_HEIGHT * u32::try_from(rows.len().max(FEWEST_ROWS))?;
    let root = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let dots = dots(rows);
    let ratios = || dots.iter().flat_map(|dots| &dots.ratios).map(|(_, ratio)| *ratio);
    let bars = || rows.iter().filter_map(|row| row.bar);
    let low = ratios().chain(bars()).fold(1.0, f64::min) / EDGE;
    let high = ratios().fold(2.0, f64::max) * EDGE;
    let last = rows.len() - 1;
    let name = |place: &Place| match place {
        SegmentValue::CenterOf(index) if *index <= last => rows[last - index].row.to_owned(),
        _ => String::new(),
    };
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("{}: figure over the best peer's", rows[0].program), ("sans-serif", 18))
        .margin(10)
        .margin_right(LEGEND_WIDTH)
        .x_label_area_size(40)
        .y_label_area_size(LABEL_WIDTH)
        .build_cartesian_2d((low..high).log_scale(), (0..last.max(1)).into_segmented())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .y_labels(rows.len() + 1)
        .y_label_formatter(&name)
        .x_label_formatter(&|ratio| tick(*ratio))
        .x_desc("1 is the best peer, less is better; grey lines are the bars")
        .draw()?;
    chart.draw_series(rows.iter().enumerate().filter_map(|(index, row)| {
        let bar = row.bar.filter(|bar| *bar <= high)?;
        let ends = [last - index, last - index + 1].map(|edge| (bar, SegmentValue::Exact(edge)));
        Some(PathElement::new(ends.to_vec(), RGBColor(150, 150, 150).stroke_width(3)))
    }))?;
    let left = (WIDTH - LEGEND_WIDTH).cast_signed() + LEGEND_INDENT;
    for (dots, line) in dots.iter().zip(1..) {
        let (size, style) = look(others, dots);
        chart.draw_series(dots.ratios.iter().map(|(row, ratio)| {
            Circle::new((*ratio, SegmentValue::CenterOf(last - row)), size, style)
        }))?;
        let y = line * LEGEND_HEIGHT;
        root.draw(&Circle::new((left, y), size, style))?;
        root.draw(&Text::new(
            dots.name.as_str(),
            (left + LEGEND_INDENT, y - OWN_DOT),
            ("sans-serif", 13),
        ))?;
    }
    root.present()?;
    Ok(())
}

/// homenode is black: full as it is, a ring in its other setting.
fn look(others: &[String], dots: &Dots) -> (i32, ShapeStyle) {
    if !dots.own {
        let color = others.iter().position(|name| *name == dots.name).unwrap_or(others.len());
        (DOT, Palette99::pick(color).filled())
    } else if dots.name == HOMENODE {
        (OWN_DOT, BLACK.filled())
    } else {
        (OWN_DOT + 2, BLACK.stroke_width(2))
    }
}

/// Text where the first digit is 1, 2 or 5; the others would overlap.
fn tick(ratio: f64) -> String {
    let digits = format!("{ratio:.1}");
    let first = digits.trim_start_matches(['0', '.']).chars().next();
    if matches!(first, Some('1' | '2' | '5')) { digits } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_ticks_have_text() {
        assert_eq!([0.5, 1.0, 20.0].map(tick), ["0.5", "1.0", "20.0"]);
        assert_eq!([0.3, 4.0, 90.0].map(tick), ["", "", ""]);
    }
}
