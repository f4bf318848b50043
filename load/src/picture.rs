//! A record as a picture, SVG or PNG, drawn in the same way.

use crate::error::{LoadError, Result};
use crate::record::{Phase, Record, ceiling, most};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

/// Width and height.
const SIZE: (u32, u32) = (960, 320);
/// In how many steps time is drawn.
const STEPS: usize = 200;
/// Debian's fonts-dejavu-core; programs that show SVG have their own.
const FONT: &str = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";
/// What pictures call it.
const FAMILY: &str = "sans-serif";
const WRITES: RGBColor = RGBColor(31, 111, 178);
/// Behind phases in which it stays somewhere, one after the other.
const STAYS: [RGBColor; 2] = [RGBColor(232, 240, 250), RGBColor(253, 238, 219)];
const MOVES: RGBColor = RGBColor(225, 225, 225);
/// What phases are called in which it moves.
const MOVING: &str = "moving";

/// Write it as SVG.
pub fn svg(record: &Record, path: &Path) -> Result<()> {
    load_font()?;
    let mut text = String::new();
    draw(record, SVGBackend::with_string(&mut text, SIZE).into_drawing_area())?;
    fs::write(path, text).map_err(LoadError::at(path))
}

/// Write it as PNG.
pub fn png(record: &Record, path: &Path) -> Result<()> {
    load_font()?;
    let (width, height) = SIZE;
    let mut pixels = vec![0; (width * height * 3) as usize];
    draw(record, BitMapBackend::with_buffer(&mut pixels, SIZE).into_drawing_area())?;
    let file = File::create(path).map_err(LoadError::at(path))?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), width, height);
    encoder.set_color(png::ColorType::Rgb);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&pixels)?;
        writer.finish()
    });
    written.map_err(|why| LoadError::File { path: path.to_owned(), why: why.into() })
}

/// Text is measured with it in either format. It is kept to the end of the process.
fn load_font() -> Result<()> {
    let path = Path::new(FONT);
    let bytes = fs::read(path).map_err(|_| LoadError::Font(path.to_owned()))?;
    register_font(FAMILY, FontStyle::Normal, bytes.leak()).map_err(|_| LoadError::Font(path.to_owned()))
}

fn draw<B: DrawingBackend>(record: &Record, area: DrawingArea<B, Shift>) -> Result<()> {
    let (start, end) = record.span()?;
    let steps = record.steps(STEPS)?;
    let top = ceiling(most(&steps)) * 1.12;
    area.fill(&WHITE).map_err(failed)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(seconds(start)..seconds(end), 0.0..top)
        .map_err(failed)?;
    let mut mesh = chart.configure_mesh();
    mesh.disable_mesh().x_desc("seconds").y_desc("writes per second").label_style((FAMILY, 13));
    mesh.x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .draw()
        .map_err(failed)?;
    let backgrounds = record.phases.iter().enumerate().map(|(number, phase)| background(number, phase, top));
    chart.draw_series(backgrounds).map_err(failed)?;
    let steps = steps.iter().flat_map(|step| [(step.from, step.per_second), (step.to, step.per_second)]);
    chart.draw_series(AreaSeries::new(steps, 0.0, WRITES.mix(0.85))).map_err(failed)?;
    chart.draw_series(record.phases.iter().map(|phase| name(phase, top))).map_err(failed)?;
    area.present().map_err(failed)
}

fn name(phase: &Phase, top: f64) -> Text<'static, (f64, f64), String> {
    let style = (FAMILY, 13).into_font().color(&BLACK).pos(Pos::new(HPos::Center, VPos::Top));
    Text::new(phase.name.clone(), (seconds(phase.from_ms.midpoint(phase.to_ms)), top * 0.985), style)
}

fn background(number: usize, phase: &Phase, top: f64) -> Rectangle<(f64, f64)> {
    let colour = if phase.name == MOVING { MOVES } else { STAYS[number / 2 % 2] };
    Rectangle::new([(seconds(phase.from_ms), 0.0), (seconds(phase.to_ms), top)], colour.filled())
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1e3
}

fn failed(why: impl std::fmt::Display) -> LoadError {
    LoadError::Picture(why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::journey;

    #[test]
    fn both_formats_are_written() {
        let at = |ending| std::env::temp_dir().join(format!("picture-{}.{ending}", std::process::id()));
        svg(&journey(), &at("svg")).unwrap();
        let text = fs::read_to_string(at("svg")).unwrap();
        assert!(text.starts_with("<svg ") && text.contains(MOVING) && text.contains("writes per second"));
        png(&journey(), &at("png")).unwrap();
        assert!(fs::read(at("png")).unwrap().starts_with(b"\x89PNG"));
        ["svg", "png"].into_iter().for_each(|ending| fs::remove_file(at(ending)).unwrap());
    }
}
