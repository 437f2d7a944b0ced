/** Error codes of the provider; a pair is a range, with its ends. */
export type ProviderCodes = readonly (number | readonly [from: number, to: number])[]

export const includesCode = (codes: ProviderCodes, code: number): boolean =>
  codes.some((given) => (typeof given === 'number' ? given === code : code >= given[0] && code <= given[1]))
