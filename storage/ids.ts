/** The greatest number that a bigint holds. */
export const MAX_BIGINT = '9223372036854775807'

/** Returns an id as a bigint can store it. One that exceeds a bigint names nothing, as does 0. */
export const toStorableId = (id: string | number): string => {
  const text = String(id)
  return text.length > 19 || (text.length === 19 && text > MAX_BIGINT) ? '0' : text
}
