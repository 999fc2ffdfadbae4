// Stands in for markdown-it's spelled-out tables of punctuation and symbols: the browser has the same classes built in.
export const P = /\p{P}/u;
export const S = /\p{S}/u;
export const Z = /\p{Z}/u;
export const Cc = /\p{Cc}/u;
export const Any = /[\s\S]/u;
