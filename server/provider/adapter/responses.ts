import { z } from 'zod'
import type { Problem } from '../../kernel/problem.ts'
import { providerCodeOf } from '../port.ts'
import type { ProviderRequest, ProviderHttp } from './http.ts'
import { unreadableResponse } from './problems.ts'

/** Ids are strings in most places and numbers in some. */
export const ProviderId = z.union([z.string().min(1), z.int()]).transform(String)
/** Text that may be absent; anything else reads as null. */
export const OptionalText = z
  .string()
  .nullish()
  .catch(null)
  .transform((value) => value ?? null)
export const SuccessResponse = z.object({ success: z.literal(true) })

const MAX_PAGES = 1000

/**
 * Fetches all rows of a list by its cursors. The `next` URL of the provider contains the token; it only
 * serves to see that there is another page. Throws when the list cannot be read to its end.
 */
export const fetchAllRows = async <S extends z.ZodType>(
  http: ProviderHttp,
  row: S,
  request: ProviderRequest,
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
  for (let page = 0; page < MAX_PAGES; page++) {
    const { data, paging } = await http.request(
      Page,
      { ...request, query: { ...request.query, after } },
      signal,
    )
    rows.push(...(data as z.output<S>[]))
    if (!paging?.next) return rows
    const next = paging.cursors?.after
    if (!next || next === after) break
    after = next
  }
  // A partial list must not pass for a complete one: what it lacks would be created again.
  throw unreadableResponse()
}

/** Requests a list with these fields; with the basic ones when the provider does not know one of them. */
export const withFieldFallback = async <T>(
  fields: string,
  basicFields: string,
  list: (fields: string) => Promise<T>,
): Promise<T> => {
  try {
    return await list(fields)
  } catch (error) {
    if (providerCodeOf(error as Problem) === 100 && (error as Problem).extras.provider_subcode === undefined)
      return await list(basicFields)
    throw error
  }
}
