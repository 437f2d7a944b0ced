import type { doAs } from '../calls.ts'

export const STAFF_REPORT = 'reports_staff'

type StaffPage = { data: { staff_id: string | null }[]; next_cursor: string | null }

/** Returns the rows of all pages of this size; `between` runs after each page but the last. */
export const listStaffRows = async (
  run: ReturnType<typeof doAs>,
  input: Record<string, unknown>,
  limit: number,
  between = async (): Promise<void> => {},
): Promise<StaffPage['data']> => {
  const rows: StaffPage['data'] = []
  let cursor: string | null = null
  do {
    const page: StaffPage = await run(STAFF_REPORT, {
      ...input,
      limit,
      ...(cursor === null ? {} : { cursor }),
    })
    rows.push(...page.data)
    cursor = page.next_cursor
    if (cursor !== null) await between()
  } while (cursor !== null)
  return rows
}
