// Stands in for markdown-it's link finder in the bundle: it is made at import and switched off (`linkify: false`).
export class LinkifyIt {}
