/** Returns the weights that a header such as `Accept` gives by name, in lower case (RFC 9110, section 12.4.2). */
export const parseWeights = (header: string): Map<string, number> =>
  new Map(
    header
      .toLowerCase()
      .split(',')
      .map((item) => {
        const [name = '', ...parameters] = item.split(';').map((part) => part.trim())
        const weight = parameters.map((parameter) => /^q\s*=\s*(.*)$/.exec(parameter)).find(Boolean)?.[1]
        return [name, Number(weight ?? '1')] as const
      }),
  )
