export type Size = { readonly width: number; readonly height: number }

/** The smallest terminal in which the inbox is drawn. */
export const MIN_SIZE: Size = { width: 60, height: 15 }

export const isTooSmall = ({ width, height }: Size): boolean =>
  width < MIN_SIZE.width || height < MIN_SIZE.height
