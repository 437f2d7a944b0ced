import { type ApiResponse, callOperation, createPatientPolicy, type ServerConnection } from './remote.ts'

/** Yields the pages of a list, and waits where the rate limit says so. */
export async function* fetchPages(
  to: ServerConnection,
  operation: string,
  input: Readonly<Record<string, unknown>>,
): AsyncGenerator<ApiResponse> {
  for (let cursor: unknown; cursor !== null;) {
    const page = await callOperation(
      to,
      operation,
      typeof cursor === 'string' ? { ...input, cursor } : input,
      { policy: createPatientPolicy(to) },
    )
    yield page
    cursor = page.value['next_cursor'] ?? null
  }
}

/**
 * Returns all pages of a list as one: the first page's envelope, all rows, and no next cursor. How far a page has
 * searched is that of the last one, which came to the end.
 */
export const fetchAllPages = async (
  to: ServerConnection,
  operation: string,
  input: Readonly<Record<string, unknown>>,
): Promise<Pick<ApiResponse, 'value' | 'clock'>> => {
  let first: Record<string, unknown> | undefined
  const rows: unknown[] = []
  let clock: ApiResponse['clock']
  let searched = {}
  for await (const page of fetchPages(to, operation, input)) {
    first ??= page.value
    clock ??= page.clock
    if ('searched_to' in page.value) searched = { searched_to: page.value['searched_to'] }
    for (const row of page.value['data'] as unknown[]) rows.push(row)
  }
  return { value: { ...first, ...searched, data: rows, next_cursor: null }, clock }
}
