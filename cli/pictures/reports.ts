import { createElement as h } from 'react'
import type { CommandSpec } from '../manifest.ts'
import { draw, type Look } from '../views.ts'
import { type Staff, StaffPicture } from './staff.ts'
import { type Summary, SummaryPicture } from './summary.ts'

/** A report as a picture for a terminal. `more`: how to see the rest of the rows. */
export const drawReport = (spec: CommandSpec, value: unknown, more: string | undefined, look: Look): string =>
  draw(
    spec.verb === 'staff'
      ? h(StaffPicture, { value: value as Staff, more, look })
      : h(SummaryPicture, { value: value as Summary, look }),
    look,
  )
