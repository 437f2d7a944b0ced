import { createElement as h } from 'react'
import type { CommandSpec } from '../manifest.ts'
import { draw, type TerminalStyle } from '../views.ts'
import { type StaffReportData, StaffReportView } from './staff-report.ts'
import { type SummaryReportData, SummaryReportView } from './summary-report.ts'

/** Draws a report for a terminal. `pageNote` says how to get the next page. */
export const drawReport = (
  spec: CommandSpec,
  value: unknown,
  pageNote: string | undefined,
  style: TerminalStyle,
): string =>
  draw(
    spec.verb === 'staff'
      ? h(StaffReportView, { value: value as StaffReportData, pageNote, style })
      : h(SummaryReportView, { value: value as SummaryReportData, style }),
    style,
  )
