// Stands in for markdown-it's host name tables in the bundle: links are judged and written by the browser's own URL.
const punycode = { toASCII: (host: string) => host, toUnicode: (host: string) => host };
// biome-ignore lint/style/noDefaultExport: the library that it stands in for has a default export
export default punycode;
