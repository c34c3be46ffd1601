//! A picture as its pixels, read from a file that is compiled in.

use std::io::Cursor;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Four bytes each: red, green, blue and how opaque.
    pub rgba: Vec<u8>,
    pub width: u32,
    pub height: u32,
}

impl Image {
    /// Of a PNG as `icons/make.py` writes them; tests read each. Nothing to see is no reason to end.
    pub fn built_in(png: &[u8]) -> Self {
        Self::read(png).unwrap_or_else(|why| {
            tracing::error!("a picture cannot be read: {why}");
            Self { rgba: vec![0; 4], width: 1, height: 1 }
        })
    }

    fn read(png: &[u8]) -> Result<Self, String> {
        let mut reader = png::Decoder::new(Cursor::new(png)).read_info().map_err(in_words)?;
        let size = reader.output_buffer_size().ok_or("it is too large")?;
        let mut rgba = vec![0; size];
        let frame = reader.next_frame(&mut rgba).map_err(in_words)?;
        if (frame.color_type, frame.bit_depth) != (png::ColorType::Rgba, png::BitDepth::Eight) {
            return Err(format!("its pixels are {:?} of {:?}", frame.color_type, frame.bit_depth));
        }
        rgba.truncate(frame.buffer_size());
        Ok(Self { rgba, width: frame.width, height: frame.height })
    }
}

fn in_words(error: png::DecodingError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_read_and_noise_is_refused() {
        let icon = Image::read(include_bytes!("../../icons/tray-idle-dark.png")).unwrap();
        assert_eq!((icon.width, icon.height, icon.rgba.len()), (64, 64, 64 * 64 * 4));
        assert!(icon.rgba.chunks(4).any(|pixel| pixel == [0xf4, 0xf4, 0xf7, 0xff]));
        assert!(Image::read(b"no picture").is_err());
        assert_eq!(Image::built_in(b"no picture").rgba, [0; 4]);
    }
}
