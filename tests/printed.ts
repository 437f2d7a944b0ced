/** Returns a pattern for an output in a document, in which `…` stands for anything. */
export const toPattern = (output: string): RegExp =>
  new RegExp(
    `^${output
      .split('…')
      .map((text) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('[^]*')}$`,
  )
