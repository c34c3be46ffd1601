//! The project a person is in, as far as its boxes tell.

use protocol::boxes::BoxView;
use std::path::Path;

/// The root of the innermost project around a folder: its root or the folder a box was made from lies
/// there or above.
pub fn around<'b>(boxes: &'b [BoxView], cwd: Option<&Path>) -> Option<&'b str> {
    let cwd = cwd?;
    let depth = |view: &&BoxView| {
        let folders = [&view.project_root, &view.workspace].into_iter().map(Path::new);
        folders.filter(|f| cwd.starts_with(f)).map(|f| f.components().count()).max()
    };
    let found = boxes.iter().filter_map(|view| Some((depth(&view)?, view)));
    found.max_by_key(|(depth, _)| *depth).map(|(_, view)| view.project_root.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_folder_means_its_innermost_project() {
        let mut boxes = samples::boxes();
        boxes[2].project_root = "/home/ada/shop-api/docs".into();
        boxes[2].workspace = "/srv/docs".into();
        let root = |cwd: &str| around(&boxes, Some(Path::new(cwd)));
        assert_eq!(root("/home/ada/shop-api/src"), Some("/home/ada/shop-api"));
        assert_eq!(root("/home/ada/shop-api/docs/a"), Some("/home/ada/shop-api/docs"));
        assert_eq!(root("/srv/docs"), Some("/home/ada/shop-api/docs"));
        assert_eq!(root("/home/ada"), None);
        assert_eq!(root("/home/ada/shop-api-2"), None);
    }
}
