//! The tray's picture: a drawing of `icons/`, and on its disc the number of what needs somebody.
//!
//! A panel shows it about 22 pixels high, so there is one digit, and `9+` for more.

use crate::image::Image;
use crate::menu::{Icon, Shape};

/// For which background; `icons/make.py` says where the disc is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    Dark,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    Light,
    /// The menu bar colours what is not transparent, so the digit is a hole.
    #[cfg_attr(target_os = "linux", allow(dead_code))]
    Template,
}

/// The digits: 1 to 9 and 9+, four in a row, each in a square cell.
const CELL: u32 = 40;
const IN_A_ROW: u32 = 4;
const CELLS: u32 = 10;
/// Where the cell is in the icon.
const LEFT: u32 = 23;
const TOP: u32 = 1;
const CHANNELS: u32 = 4;

macro_rules! picture {
    ($name:literal) => {
        Image::built_in(include_bytes!(concat!("../../icons/", $name)))
    };
}

pub fn draw(icon: Icon, look: Look) -> Image {
    let image = shape(icon, look);
    let Ok(number) = u32::try_from(icon.number) else { return image };
    if number == 0 { image } else { numbered(&image, number.min(CELLS), look) }
}

/// What needs somebody is shown as filled, unless the engine is away.
fn shape(icon: Icon, look: Look) -> Image {
    match (icon.shape, icon.number > 0, look == Look::Dark) {
        (Shape::Down, true, true) => picture!("tray-down-asks-dark.png"),
        (Shape::Down, false, true) => picture!("tray-down-dark.png"),
        (_, true, true) => picture!("tray-asks-dark.png"),
        (Shape::Busy, false, true) => picture!("tray-busy-dark.png"),
        (Shape::Idle, false, true) => picture!("tray-idle-dark.png"),
        (Shape::Down, true, false) => picture!("tray-down-asks-light.png"),
        (Shape::Down, false, false) => picture!("tray-down-light.png"),
        (_, true, false) => picture!("tray-asks-light.png"),
        (Shape::Busy, false, false) => picture!("tray-busy-light.png"),
        (Shape::Idle, false, false) => picture!("tray-idle-light.png"),
    }
}

/// The image with a digit on its disc, from 1 on.
fn numbered(image: &Image, number: u32, look: Look) -> Image {
    let digits = picture!("tray-digits.png");
    let (column, row) = ((number - 1) % IN_A_ROW * CELL, (number - 1) / IN_A_ROW * CELL);
    let mut pixels = image.rgba.clone();
    for (x, y) in (0..CELL).flat_map(|y| (0..CELL).map(move |x| (x, y))) {
        let from = at(digits.width, column + x, row + y);
        let ink = digits.rgba.get(from + 3).copied().unwrap_or(0);
        let to = at(image.width, LEFT + x, TOP + y);
        if let Some(pixel) = pixels.get_mut(to..to + 4).filter(|_| ink > 0) {
            inked(pixel, ink, look);
        }
    }
    Image { rgba: pixels, ..*image }
}

fn at(width: u32, x: u32, y: u32) -> usize {
    ((y * width + x) * CHANNELS) as usize
}

/// White on the red disc of a light panel, dark on the light one of a dark panel.
fn inked(pixel: &mut [u8], ink: u8, look: Look) {
    let colour = match look {
        Look::Light => [255, 255, 255],
        Look::Dark => [0x23, 0x12, 0x0b],
        Look::Template => {
            pixel[3] = mixed(pixel[3], 0, ink);
            return;
        }
    };
    for (channel, wanted) in pixel.iter_mut().zip(colour) {
        *channel = mixed(*channel, wanted, ink);
    }
}

/// From `under` to `over`, as far as `ink` says.
fn mixed(under: u8, over: u8, ink: u8) -> u8 {
    let (under, over, ink) = (u32::from(under), u32::from(over), u32::from(ink));
    u8::try_from((under * (255 - ink) + over * ink) / 255).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOKS: [Look; 3] = [Look::Dark, Look::Light, Look::Template];

    fn pixels(shape: Shape, number: usize, look: Look) -> Vec<u8> {
        let image = draw(Icon { shape, number }, look);
        assert_eq!((image.width, image.height), (64, 64));
        image.rgba.clone()
    }

    #[test]
    fn every_number_and_state_has_a_picture_of_its_own() {
        for look in LOOKS {
            let mut all: Vec<_> =
                (0..=10).map(|number| pixels(Shape::Idle, number, look)).collect();
            all.extend([Shape::Busy, Shape::Down].map(|shape| pixels(shape, 0, look)));
            all.extend((1..=10).map(|number| pixels(Shape::Down, number, look)));
            let count = all.len();
            all.sort();
            all.dedup();
            assert_eq!(all.len(), count, "two look the same");
        }
        assert_eq!(pixels(Shape::Idle, 10, Look::Dark), pixels(Shape::Idle, 1000, Look::Dark));
        assert_ne!(pixels(Shape::Idle, 3, Look::Dark), pixels(Shape::Idle, 3, Look::Light));
    }

    #[test]
    fn a_digit_stays_on_the_disc() {
        for look in LOOKS {
            let without = shape(Icon { shape: Shape::Idle, number: 1 }, look).rgba;
            for number in 1..=10 {
                let with = pixels(Shape::Idle, number, look);
                let changed: Vec<u32> = (0..64 * 64)
                    .filter(|n| {
                        let at = (n * CHANNELS) as usize;
                        with[at..at + 4] != without[at..at + 4]
                    })
                    .collect();
                assert!(changed.len() > 80, "{number} is hardly there: {}", changed.len());
                let on_disc = |n: &u32| {
                    let (x, y) = ((n % 64).abs_diff(43), (n / 64).abs_diff(21));
                    x * x + y * y <= 20 * 20
                };
                assert!(changed.iter().all(on_disc), "{number} leaves the disc");
            }
        }
    }

    #[test]
    fn a_template_has_holes_and_no_new_colour() {
        let (without, with) = (
            shape(Icon { shape: Shape::Idle, number: 8 }, Look::Template),
            pixels(Shape::Idle, 8, Look::Template),
        );
        let colours =
            |pixels: &[u8]| -> Vec<u8> { pixels.chunks(4).flat_map(|p| p[..3].to_vec()).collect() };
        assert_eq!(colours(&without.rgba), colours(&with));
        assert!(without.rgba.chunks(4).zip(with.chunks(4)).any(|(a, b)| a[3] == 255 && b[3] == 0));
    }
}
