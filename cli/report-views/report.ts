import { stripVTControlCharacters } from 'node:util'
import { renderToString } from 'ink'
import { createElement as h, type ReactNode } from 'react'
import type { CommandSpec } from '../manifest.ts'
import type { TerminalStyle } from '../table.ts'
import { type StaffReportData, StaffReportView } from './staff-report.ts'
import { type SummaryReportData, SummaryReportView } from './summary-report.ts'

const draw = (node: ReactNode, style: TerminalStyle): string => {
  const drawn = renderToString(node, { columns: style.width })
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
  return `${style.color ? drawn : stripVTControlCharacters(drawn)}\n`
}

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
