//! Terminals that show pictures: by kitty's protocol, iTerm2's, or sixels.

use std::io::{IsTerminal, stdin, stdout};

use featherload::{Error, Result};
use image::{DynamicImage, RgbImage};
use viuer::{Config, KittySupport};

/// Whether stdout is such a terminal. Asks it, and reads its answer.
pub fn shows_pictures() -> bool {
    stdout().is_terminal()
        && stdin().is_terminal()
        && (viuer::is_iterm_supported()
            || viuer::get_kitty_support() != KittySupport::None
            || viuer::is_sixel_supported())
}

/// Shows the picture where the cursor is, no wider than the terminal.
pub fn show(picture: &RgbImage) -> Result<()> {
    let config = Config {
        absolute_offset: false,
        ..Config::default()
    };
    viuer::print(&DynamicImage::ImageRgb8(picture.clone()), &config)
        .map_err(|e| Error::io("show a picture", std::io::Error::other(e.to_string())))?;
    Ok(())
}
