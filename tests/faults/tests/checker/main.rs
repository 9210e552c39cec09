//! The checker itself: what it lets pass, and what it finds.

mod linear;
mod window;
