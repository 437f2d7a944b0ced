import { z } from 'zod'
import type { Problem } from '../../core/problem.ts'
import { providerCode } from '../port.ts'
import type { Ask, Http } from './http.ts'
import { unreadable } from './problems.ts'

/** Ids are text in most places and numbers in some. */
export const ProviderId = z.union([z.string().min(1), z.int()]).transform(String)
/** What may be absent, and what is of no use when it is not text. */
export const Maybe = z
  .string()
  .nullish()
  .catch(null)
  .transform((value) => value ?? null)
export const Success = z.object({ success: z.literal(true) })

const MOST_PAGES = 1000

/**
 * Every row of a list, by the cursors: the address of the next page that the provider also gives holds the
 * token, and is never used but to see that there is one.
 */
export const everyPage = async <S extends z.ZodType>(
  http: Http,
  row: S,
  ask: Ask,
  signal: AbortSignal,
): Promise<z.output<S>[]> => {
  const Page = z.object({
    data: z.array(row),
    paging: z
      .object({
        cursors: z.object({ after: z.string().optional() }).optional(),
        next: z.unknown().optional(),
      })
      .nullish(),
  })
  const rows: z.output<S>[] = []
  let after: string | undefined
  for (let page = 0; page < MOST_PAGES; page++) {
    const { data, paging } = await http.ask(Page, { ...ask, query: { ...ask.query, after } }, signal)
    rows.push(...(data as z.output<S>[]))
    if (!paging?.next) return rows
    const next = paging.cursors?.after
    if (!next || next === after) break
    after = next
  }
  // Part of a list must not pass for the whole: what is missing in it would be made again.
  throw unreadable()
}

/**
 * A list asked with these fields; where the provider does not know one of them, with the few it has always
 * known.
 */
export const withFields = async <T>(
  fields: string,
  few: string,
  list: (fields: string) => Promise<T>,
): Promise<T> => {
  try {
    return await list(fields)
  } catch (error) {
    if (providerCode(error as Problem) === 100 && (error as Problem).extras.provider_subcode === undefined)
      return await list(few)
    throw error
  }
}
