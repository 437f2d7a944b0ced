/** A page of a list. */
export type Page = { readonly data: readonly unknown[]; readonly next_cursor: string | null }

export type RowOf<P extends Page> = P['data'][number]

/**
 * A list that was asked for: awaited it is its first page, and iterated it is all rows, page after page, as they are
 * read. `pages` iterates the pages. It is sent when it is awaited or iterated.
 */
export type Listing<P extends Page> = PromiseLike<P> &
  AsyncIterable<RowOf<P>> & { readonly pages: () => AsyncGenerator<P, void, undefined> }

/** `read`: reads the page after a cursor; the first without one. */
export const createListing = <P extends Page>(
  read: (cursor: string | undefined) => Promise<P>,
): Listing<P> => {
  async function* pages(): AsyncGenerator<P, void, undefined> {
    let cursor: string | undefined
    do {
      const page = await read(cursor)
      yield page
      cursor = page.next_cursor ?? undefined
    } while (cursor !== undefined)
  }
  async function* rows(): AsyncGenerator<RowOf<P>, void, undefined> {
    for await (const { data } of pages()) yield* data as Awaited<RowOf<P>>[]
  }
  return {
    // oxlint-disable-next-line unicorn/no-thenable -- a list is awaited for its first page
    then: (resolve, reject) => read(undefined).then(resolve, reject),
    [Symbol.asyncIterator]: rows,
    pages,
  }
}
