//! QR codes as drawings of one path.

use std::fmt::Write;

use fast_qr::{ECL, QRBuilder};

/// Modules of white around the code, as the standard wants it.
const QUIET_ZONE: usize = 4;

/// A code as SVG, black on white whatever the page is like. The text is a barcode's, which fits many times.
pub(super) fn svg(text: &str) -> String {
    let code = QRBuilder::new(text).ecl(ECL::M).build().expect("a barcode's text fits into a QR code");
    let side = code.size + 2 * QUIET_ZONE;
    let mut path = String::new();
    for y in 0..code.size {
        let mut x = 0;
        while x < code.size {
            let length = code[y][x..code.size].iter().take_while(|module| module.value()).count();
            if length > 0 {
                let (left, top) = (x + QUIET_ZONE, y + QUIET_ZONE);
                write!(path, "M{left} {top}h{length}v1h-{length}z").expect("a String takes it");
            }
            x += length + 1;
        }
    }
    let field = format!(r##"<path fill="#fff" d="M0 0h{side}v{side}H0z"/>"##);
    format!(
        r#"<svg viewBox="0 0 {side} {side}" shape-rendering="crispEdges" role="img" aria-label="QR code">{field}<path d="{path}"/></svg>"#
    )
}
