/** Returns what fits an output that a document shows, in which `…` stands for anything. */
export const toPattern = (output: string): RegExp =>
  new RegExp(
    `^${output
      .split('…')
      .map((text) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('[^]*')}$`,
  )
