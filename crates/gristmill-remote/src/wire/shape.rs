//! The two shapes that values have: a record of fields, and a choice of several things.

/// Both directions of a struct from the list of its fields. It does not compile when one
/// is missing, or is none.
macro_rules! record {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl $crate::wire::Wire for $type {
            fn write(&self) -> serde_json::Value {
                let $type { $($field),* } = self;
                let mut said = serde_json::Map::new();
                $( $crate::wire::say(&mut said, stringify!($field), $field); )*
                serde_json::Value::Object(said)
            }

            fn read(value: serde_json::Value) -> $crate::wire::Read<Self> {
                let mut said = $crate::wire::fields(value)?;
                Ok($type { $($field: $crate::wire::take(&mut said, stringify!($field))?),* })
            }
        }
    };
}

/// Both directions of a struct that others may not make from its fields: what it is made
/// from, and the fields that are set then.
macro_rules! growing {
    ($type:ident = $new:path { $($first:ident),+ } { $($field:ident),* $(,)? }) => {
        impl $crate::wire::Wire for $type {
            fn write(&self) -> serde_json::Value {
                let mut said = serde_json::Map::new();
                $( $crate::wire::say(&mut said, stringify!($first), &self.$first); )+
                $( $crate::wire::say(&mut said, stringify!($field), &self.$field); )*
                serde_json::Value::Object(said)
            }

            fn read(value: serde_json::Value) -> $crate::wire::Read<Self> {
                let mut said = $crate::wire::fields(value)?;
                let mut read =
                    $new($( $crate::wire::take(&mut said, stringify!($first))? ),+);
                $( read.$field = $crate::wire::take(&mut said, stringify!($field))?; )*
                Ok(read)
            }
        }
    };
}

/// Both directions of an enum: a word for each variant, beside its fields. Behind `else`
/// stands as what one is sent that is not known here, where there may be such.
macro_rules! choice {
    ($type:ident {
        $( $word:literal = $variant:ident
            $( { $($field:ident),+ $(,)? } )?
            $( ( $inner:ident ) )? ),+ $(,)?
    } $( else $other:ident => $instead:expr )?) => {
        impl $crate::wire::Wire for $type {
            fn write(&self) -> serde_json::Value {
                #[allow(unused_mut, reason = "not every variant has fields")]
                let mut said = serde_json::Map::new();
                match self {
                    $( $type::$variant $( { $($field),+ } )? $( ( $inner ) )? => {
                        $( $( $crate::wire::say(&mut said, stringify!($field), $field); )+ )?
                        $( $crate::wire::say(&mut said, stringify!($inner), $inner); )?
                        $crate::wire::named($word, said)
                    } )+
                    $( $other => $crate::wire::Wire::write(&$instead), )?
                }
            }

            fn read(value: serde_json::Value) -> $crate::wire::Read<Self> {
                let mut said = $crate::wire::fields(value)?;
                let word: String = $crate::wire::take(&mut said, "is")?;
                match &*word {
                    $( $word => Ok($type::$variant
                        $( { $($field: $crate::wire::take(&mut said, stringify!($field))?),+ } )?
                        $( ( $crate::wire::take(&mut said, stringify!($inner))? ) )?
                    ), )+
                    _ => Err($crate::wire::unknown(&word)),
                }
            }
        }
    };
}
