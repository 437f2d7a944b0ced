const MAX = '9223372036854775807'

/**
 * An id as the database can hold it. Nineteen digits can exceed a bigint; such an id names nothing, and
 * neither does 0.
 */
export const storable = (id: string | number): string => {
  const text = String(id)
  return text.length > 19 || (text.length === 19 && text > MAX) ? '0' : text
}
