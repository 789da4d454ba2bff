import '../theme/theme.css';
import { mount } from 'svelte';
import { parse } from '../model/report';
import Report from './Report.svelte';

const page = document.getElementById('page');
const text = (id: string) => document.getElementById(id)?.textContent ?? '';

if (page) {
  try {
    mount(Report, { target: page, props: { report: parse(text('tenfold'), text('summary')) } });
  } catch (error) {
    const said = document.createElement('p');
    said.className = 'plain';
    said.textContent = error instanceof Error ? error.message : 'This report cannot be shown.';
    page.replaceChildren(said);
    throw error;
  }
}
