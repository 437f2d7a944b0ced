/** `skipped`: it could not be checked, which says nothing. */
export type Status = 'ok' | 'warning' | 'problem' | 'skipped'

/** One line of the report. `about`: what was checked, such as `channel 3`. */
export type Finding = { check: string; about: string | null; status: Status; detail: string; fix?: string }

export const finding = (
  check: string,
  status: Status,
  detail: string,
  more: { about?: string; fix?: string } = {},
): Finding => ({ check, about: more.about ?? null, status, detail, ...(more.fix ? { fix: more.fix } : {}) })
