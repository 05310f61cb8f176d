//! The macro [`words!`](macro@crate::words), which declares an enum with one word for each variant.

/// Declares an enum with one word for each variant, for records, keys, labels and answers. Two variants with the same
/// word cause a compiler warning.
///
/// ```ignore
/// domain::words! {
///     /// A colour.
///     #[derive(PartialOrd, Ord)]
///     pub enum Colour {
///         /// Like the sky.
///         Blue = "blue",
///         /// Like a bottle.
///         DarkGreen = "dark_green",
///     }
/// }
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$of_all:meta])+ $vis:vis enum $name:ident { $($(#[$of_one:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$of_all])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis enum $name { $($(#[$of_one])* $variant,)+ }

        impl $name {
            /// Every variant, in the order of their declaration.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Returns the word of the variant.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Returns the variant with this word.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    crate::words! {
        #[derive(PartialOrd, Ord)]
        enum Colour {
            /// Like the sky.
            Blue = "blue",
            /// Like a bottle.
            DarkGreen = "dark_green",
        }
    }

    #[test]
    fn words_are_read_back() {
        assert_eq!(Colour::ALL, [Colour::Blue, Colour::DarkGreen]);
        for colour in Colour::ALL {
            assert_eq!(Colour::parse(colour.as_str()), Some(colour));
            assert_eq!(colour.to_string(), colour.as_str());
        }
        assert_eq!(Colour::DarkGreen.as_str(), "dark_green");
        assert_eq!(Colour::parse("Blue"), None);
        assert!(Colour::Blue < Colour::DarkGreen);
    }
}
